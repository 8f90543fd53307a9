import { fractionalSeconds } from './durations.ts';
import type { StrictRefusal } from './refusal.ts';
import type { ProviderForms, Words } from './words.ts';
import { retryAfter } from './words.ts';

// Providers with an API of their own. `strict-forms.ts` says where the texts come from.

const REQUEST_ID = 'req_strict0000000000000000';

const ANTHROPIC_UNITS = {
  rpm: 'requests per minute',
  tpm: 'tokens per minute',
  itpm: 'input tokens per minute',
  otpm: 'output tokens per minute',
  rpd: 'requests per day',
  tpd: 'tokens per day',
};

const anthropicOver =
  (dimension: 'rpm' | 'itpm') =>
  (refusal: StrictRefusal): Words => ({
    message: `This request would exceed your organization's rate limit of ${refusal.limit.toLocaleString('en-US')} ${ANTHROPIC_UNITS[refusal.dimension ?? dimension]} (org: org-strict, model: ${refusal.model}). For details, refer to: https://docs.claude.com/en/api/rate-limits.`,
  });

/** Anthropic. A spend cap has no Retry-After; a plan's window has its own headers. */
export const ANTHROPIC: ProviderForms = {
  body: ({ type, message, extra }) => ({
    type: 'error',
    error: { ...extra, type: type ?? 'rate_limit_error', message },
    request_id: REQUEST_ID,
  }),
  headers: (refusal) => ({
    ...(refusal.kind !== 'quota' && retryAfter(refusal)),
    ...(refusal.kind === 'long_window' && {
      'anthropic-ratelimit-unified-status': 'rejected',
      'anthropic-ratelimit-unified-reset': String(
        Math.ceil((refusal.at + (refusal.waitMs ?? 0)) / 1_000),
      ),
    }),
  }),
  words: {
    requests: anthropicOver('rpm'),
    tokens: anthropicOver('itpm'),
    concurrency: () => ({
      message:
        'Number of concurrent connections has exceeded your rate limit. Please try again later or contact sales at https://claude.com/contact-sales to discuss your options for a rate limit increase.',
    }),
    long_window: () => ({
      message: "You've reached your usage limit for this week. Please try again later.",
    }),
    overload: () => ({ status: 529, type: 'overloaded_error', message: 'Overloaded' }),
    quota: () => ({
      message: 'You have reached your specified API usage limits.',
      extra: { details: { error_code: 'enforced_spend_limit_reached' } },
    }),
    ramp: () => ({
      message: 'Your usage increased too quickly. Please slow down.',
      extra: { details: { error_code: 'ramp_limit_exceeded' } },
    }),
    never_fits: () => ({
      status: 413,
      type: 'request_too_large',
      message: 'Request exceeds the maximum size',
    }),
  },
};

const GEMINI_QUOTAS = {
  requests: ['generate_content_free_tier_requests', 'GenerateRequestsPerMinutePerProjectPerModel'],
  tokens: [
    'generate_content_free_tier_input_token_count',
    'GenerateContentInputTokensPerModelPerMinute',
  ],
  long_window: ['generate_content_free_tier_requests', 'GenerateRequestsPerDayPerProjectPerModel'],
} as const;

/** A quota that names itself, with the delay in the body. For a day's quota that delay is a lie. */
function geminiQuota(refusal: StrictRefusal, kind: keyof typeof GEMINI_QUOTAS): Words {
  const [metric, id] = GEMINI_QUOTAS[kind];
  const seconds = fractionalSeconds(kind === 'long_window' ? 15_000 : (refusal.waitMs ?? 1_000));
  const { model, limit } = refusal;
  const quotaMetric = `generativelanguage.googleapis.com/${metric}`;
  return {
    message: `You exceeded your current quota, please check your plan and billing details. \n* Quota exceeded for metric: ${quotaMetric}, limit: ${limit}, model: ${model}\nPlease retry in ${seconds}s.`,
    extra: {
      details: [
        {
          '@type': 'type.googleapis.com/google.rpc.Help',
          links: [
            {
              description: 'Learn more about Gemini API quotas',
              url: 'https://ai.google.dev/gemini-api/docs/rate-limits',
            },
          ],
        },
        {
          '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
          violations: [
            {
              quotaMetric,
              quotaId: `${id}-FreeTier`,
              quotaDimensions: { location: 'global', model },
              quotaValue: String(limit),
            },
          ],
        },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${seconds}s` },
      ],
    },
  };
}

/** Gemini. No headers: what it tells, it tells in the body. */
export const GEMINI: ProviderForms = {
  body: ({ status = 429, code, message, extra }) => ({
    error: { code: status, message, status: code ?? 'RESOURCE_EXHAUSTED', ...extra },
  }),
  headers: () => ({}),
  words: {
    requests: (refusal) => geminiQuota(refusal, 'requests'),
    tokens: (refusal) => geminiQuota(refusal, 'tokens'),
    long_window: (refusal) => geminiQuota(refusal, 'long_window'),
    concurrency: ({ model, limit }) => ({
      message: `Too many concurrent requests for ${model}: the limit is ${limit}.`,
    }),
    overload: () => ({
      status: 503,
      code: 'UNAVAILABLE',
      message: 'The model is overloaded. Please try again later.',
    }),
    quota: () => ({
      message: 'You exceeded your current quota, please check your plan and billing details.',
    }),
    never_fits: () => ({
      status: 400,
      code: 'INVALID_ARGUMENT',
      message: 'The input token count exceeds the maximum number of tokens allowed.',
    }),
    ramp: () => ({ message: 'Resource has been exhausted (e.g. check quota).' }),
  },
};

/** Bedrock. The exception's name is in a header. */
export const BEDROCK: ProviderForms = {
  body: ({ message }) => ({ message }),
  headers: (_refusal, { type }) => ({ 'x-amzn-errortype': type ?? 'ThrottlingException' }),
  words: {
    requests: () => ({ message: 'Too many requests, please wait before trying again.' }),
    tokens: () => ({ message: 'Too many tokens, please wait before trying again.' }),
    long_window: () => ({ message: 'Too many tokens per day, please wait before trying again.' }),
    concurrency: () => ({
      message: 'Too many concurrent requests, please wait before trying again.',
    }),
    overload: () => ({
      status: 503,
      type: 'ServiceUnavailableException',
      message: 'Bedrock is unable to process your request.',
    }),
    quota: () => ({
      status: 400,
      type: 'ServiceQuotaExceededException',
      message: 'Your request exceeds the service quota for your account.',
    }),
    never_fits: () => ({
      status: 400,
      type: 'ValidationException',
      message: 'Input is too long for requested model.',
    }),
    ramp: () => ({ message: 'Too many requests, please wait before trying again.' }),
  },
};

/** Ollama, in the cloud (429) and at home (503). */
export const OLLAMA: ProviderForms = {
  body: ({ message }) => ({ error: message }),
  headers: () => ({}),
  words: {
    concurrency: () => ({ message: 'too many concurrent requests' }),
    overload: () => ({
      status: 503,
      message: 'server busy, please try again.  maximum pending requests exceeded',
    }),
    long_window: () => ({ message: 'you have reached your weekly usage limit' }),
  },
};

/** Cohere. */
export const COHERE: ProviderForms = {
  body: ({ message }) => ({ id: 'strict', message }),
  headers: () => ({}),
  words: {
    requests: ({ limit }) => ({
      message: `You are using a Trial key, which is limited to ${limit} API calls / minute. You can continue to use the Trial key for free or upgrade to a Production key with higher rate limits at 'https://dashboard.cohere.com/api-keys'.`,
    }),
    tokens: () => ({ message: 'trial token rate limit exceeded' }),
  },
};

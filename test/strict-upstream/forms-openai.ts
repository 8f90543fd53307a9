import { goDuration, wholeSeconds } from './durations.ts';
import type { StrictRefusal } from './refusal.ts';
import type { ProviderForms, Words } from './words.ts';
import { plainWords, retryAfter } from './words.ts';

// OpenAI and those who took over its error object. `strict-forms.ts` says where the texts come from.

const openaiBody = ({ type, code, message }: Words): unknown => ({
  error: { message, type: type ?? 'rate_limit_error', param: null, code: code ?? null },
});

const DIMENSION_TEXT = {
  rpm: 'requests per min (RPM)',
  tpm: 'tokens per min (TPM)',
  itpm: 'input tokens per min (ITPM)',
  otpm: 'output tokens per min (OTPM)',
  rpd: 'requests per day (RPD)',
  tpd: 'tokens per day (TPD)',
};

const FALLBACK_DIMENSION = { requests: 'rpm', tokens: 'tpm', long_window: 'rpd' } as const;

function dimensionText({ kind, dimension }: StrictRefusal): string {
  const short = kind === 'requests' || kind === 'long_window' ? FALLBACK_DIMENSION[kind] : 'tpm';
  return DIMENSION_TEXT[dimension ?? short];
}

const usedText = ({ limit, used, requested }: StrictRefusal): string =>
  `Limit ${limit}, Used ${Math.ceil(used)}, Requested ${requested}.`;

const againIn = ({ waitMs }: StrictRefusal): string =>
  waitMs === null ? 'Please try again later.' : `Please try again in ${goDuration(waitMs)}.`;

function openaiReached(refusal: StrictRefusal): Words {
  const about = dimensionText(refusal);
  return {
    type: about.startsWith('requests') ? 'requests' : 'tokens',
    code: 'rate_limit_exceeded',
    message: `Rate limit reached for ${refusal.model} in organization org-strict on ${about}: ${usedText(refusal)} ${againIn(refusal)} Visit https://platform.openai.com/account/rate-limits to learn more.`,
  };
}

/** OpenAI. It refuses with 429 what never fits. */
export const OPENAI: ProviderForms = {
  body: openaiBody,
  headers: retryAfter,
  words: {
    requests: openaiReached,
    tokens: openaiReached,
    long_window: openaiReached,
    concurrency: (refusal) => ({
      type: 'requests',
      code: 'rate_limit_exceeded',
      message: `Rate limit reached for ${refusal.model} in organization org-strict on concurrent requests: ${usedText(refusal)} Please try again later.`,
    }),
    overload: () => ({
      status: 503,
      type: 'server_error',
      code: 'server_is_overloaded',
      message: 'The engine is currently overloaded, please try again later.',
    }),
    quota: () => ({
      type: 'insufficient_quota',
      code: 'insufficient_quota',
      message: 'You exceeded your current quota, please check your plan and billing details.',
    }),
    never_fits: (refusal) => ({
      status: 429,
      type: 'tokens',
      code: 'rate_limit_exceeded',
      message: `Request too large for ${refusal.model} in organization org-strict on ${dimensionText(refusal)}: Limit ${refusal.limit}, Requested ${refusal.requested}. The input or output tokens must be reduced in order to run successfully.`,
    }),
    ramp: () => ({
      type: 'rate_limit_error',
      code: 'slow_down',
      message: 'Your request rate increased too quickly. Please slow down.',
    }),
  },
};

const azureOver =
  (what: string) =>
  ({ waitMs }: StrictRefusal): Words => ({
    code: '429',
    message: `Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2026-04-01 have exceeded ${what} of your current OpenAI S0 pricing tier. Please retry after ${wholeSeconds(waitMs ?? 1_000)} seconds.`,
  });

/** Azure OpenAI. */
export const AZURE: ProviderForms = {
  body: ({ code, message, status }) => ({
    error: { code: code ?? String(status ?? 429), message },
  }),
  headers: ({ waitMs }): Record<string, string> =>
    waitMs === null
      ? {}
      : { 'retry-after-ms': String(Math.ceil(waitMs)), 'retry-after': wholeSeconds(waitMs) },
  words: {
    requests: azureOver('call rate limit'),
    tokens: azureOver('token rate limit'),
    long_window: azureOver('token rate limit'),
    concurrency: (refusal) => azureOver(`concurrent request limit (${refusal.limit})`)(refusal),
  },
};

const groqReached = (refusal: StrictRefusal): Words => {
  const about = dimensionText(refusal).replace('per min ', 'per minute ');
  return {
    type: about.startsWith('requests') ? 'requests' : 'tokens',
    code: 'rate_limit_exceeded',
    message: `Rate limit reached for model '${refusal.model}' in organization 'org_strict' service tier 'on_demand' on ${about}: ${usedText(refusal)} ${againIn(refusal)} Need more tokens? Upgrade to Dev Tier today.`,
  };
};

/** Groq. */
export const GROQ: ProviderForms = {
  body: ({ type, code, message }) => ({ error: { message, type, code } }),
  headers: retryAfter,
  words: {
    requests: groqReached,
    tokens: groqReached,
    long_window: groqReached,
    never_fits: ({ model, limit, requested }) => ({
      status: 413,
      type: 'tokens',
      code: 'rate_limit_exceeded',
      message: `Request too large for model '${model}' in organization 'org_strict' service tier 'on_demand' on tokens per minute (TPM): Limit ${limit}, Requested ${requested}, please reduce your message size and try again.`,
    }),
  },
};

/** Cerebras. Its error stands at the top. */
export const CEREBRAS: ProviderForms = {
  body: ({ type, code, message, param }) => ({ message, type, param: param ?? null, code }),
  headers: () => ({}),
  words: {
    overload: () => ({
      status: 429,
      type: 'too_many_requests_error',
      param: 'queue',
      code: 'queue_exceeded',
      message: "We're experiencing high traffic right now! Please try again soon.",
    }),
    tokens: () => ({
      type: 'too_many_tokens_error',
      param: 'quota',
      code: 'token_quota_exceeded',
      message: 'Tokens per minute limit exceeded - too many tokens processed.',
    }),
    requests: () => ({
      type: 'too_many_requests_error',
      param: 'quota',
      code: 'request_quota_exceeded',
      message: 'Requests per minute limit exceeded - too many requests sent.',
    }),
  },
};

/** Mistral. A limit per second or minute is told in one sentence. */
export const MISTRAL: ProviderForms = {
  body: ({ type, code, message }) =>
    type === undefined ? { message } : { object: 'error', message, type, param: null, code },
  headers: retryAfter,
  words: {
    requests: () => ({ message: 'Requests rate limit exceeded' }),
    tokens: () => ({ message: 'Tokens rate limit exceeded' }),
    overload: () => ({
      status: 429,
      type: 'service_tier_capacity_exceeded',
      code: '3505',
      message: 'Service tier capacity exceeded for this model.',
    }),
  },
};

/** DeepSeek. It has a limit of concurrency only. */
export const DEEPSEEK: ProviderForms = {
  body: openaiBody,
  headers: () => ({}),
  words: {
    concurrency: () => ({
      type: 'rate_limit_error',
      code: 'rate_limit_exceeded',
      message: 'Too many requests: you have reached the concurrency limit of your account.',
    }),
    quota: () => ({
      status: 402,
      type: 'unknown_error',
      code: 'invalid_request_error',
      message: 'Insufficient Balance',
    }),
  },
};

/** DashScope, in its OpenAI form. Its words for tokens per minute are OpenAI's for an empty account. */
export const DASHSCOPE: ProviderForms = {
  body: openaiBody,
  headers: () => ({}),
  words: {
    requests: () => ({
      type: 'limit_requests',
      code: 'Throttling.RateQuota',
      message: 'Requests rate limit exceeded, please try again later.',
    }),
    tokens: () => ({
      type: 'insufficient_quota',
      code: 'insufficient_quota',
      message: 'You exceeded your current quota, please check your plan and billing details.',
    }),
    ramp: () => ({
      type: 'limit_burst_rate',
      code: 'Throttling.BurstRate',
      message:
        'Request rate increased too quickly. To ensure system stability, please adjust your client logic to scale requests more smoothly.',
    }),
    quota: () => ({
      status: 400,
      type: 'Arrearage',
      code: 'Arrearage',
      message: 'Access denied, please make sure your account is in good standing.',
    }),
  },
};

/** Together. Above the rate that it grants just now it answers 429, below it 503. */
export const TOGETHER: ProviderForms = {
  body: openaiBody,
  headers: () => ({}),
  words: {
    overload: (refusal) => ({ ...plainWords(refusal), status: 503, type: 'service_unavailable' }),
  },
};

import { beijingTime, wholeSeconds } from './durations.ts';
import type { StrictRefusal } from './refusal.ts';
import type { ProviderForms, Words } from './words.ts';
import { retryAfter } from './words.ts';

// Providers that speak OpenAI's API and refuse in words of their own. `strict-forms.ts` says where the texts come from.

/** Z.ai. Numbered causes; a plan's window ends at a time that is told in words. */
export const ZAI: ProviderForms = {
  body: ({ code, message }) => ({ error: { code, message } }),
  headers: () => ({}),
  words: {
    concurrency: () => ({
      code: '1302',
      message:
        'High concurrency usage of this API, please reduce concurrency or contact customer service to increase limits',
    }),
    requests: () => ({
      code: '1303',
      message:
        'High frequency usage of this API, please reduce frequency or contact customer service',
    }),
    overload: () => ({
      status: 429,
      code: '1305',
      message: 'The service may be temporarily overloaded, please try again later',
    }),
    long_window: ({ at, waitMs }) => ({
      code: '1308',
      message: `Usage limit reached for 5 hour. Your limit will reset at ${beijingTime(at + (waitMs ?? 0))}`,
    }),
    quota: () => ({
      status: 429,
      code: '1113',
      message: 'Insufficient balance or no resource package. Please recharge.',
    }),
  },
};

const kimiAfter = ({ waitMs }: StrictRefusal): string =>
  `please try again after ${wholeSeconds(waitMs ?? 1_000)} seconds`;

/** Moonshot (Kimi). It names the cap. */
export const MOONSHOT: ProviderForms = {
  body: ({ type, message }) => ({ error: { message, type: type ?? 'rate_limit_reached_error' } }),
  headers: () => ({}),
  words: {
    concurrency: (refusal) => ({
      message: `Your account org-strict<ak-strict> request reached max organization concurrency: ${refusal.limit}, ${kimiAfter(refusal)}`,
    }),
    requests: (refusal) => ({
      message: `Your account org-strict<ak-strict> request reached organization max RPM: ${refusal.limit}, ${kimiAfter(refusal)}`,
    }),
    tokens: ({ used, limit }) => ({
      message: `Your account org-strict<ak-strict> request reached organization TPM rate limit, current: ${Math.ceil(used)}, limit: ${limit}`,
    }),
    long_window: ({ used, limit }) => ({
      message: `Your account org-strict<ak-strict> request reached organization TPD rate limit, current: ${Math.ceil(used)}, limit: ${limit}`,
    }),
    overload: () => ({
      status: 429,
      type: 'engine_overloaded_error',
      message: 'The engine is currently overloaded, please try again later',
    }),
    quota: () => ({
      status: 429,
      type: 'exceeded_current_quota_error',
      message:
        'Your account org-strict<ak-strict> is suspended due to insufficient balance, please recharge your account or check your plan and billing details',
    }),
  },
};

const minimax = (code: string, message: string) => (): Words => ({ status: 200, code, message });

/** MiniMax on its native routes: a refusal inside a 200. */
export const MINIMAX: ProviderForms = {
  body: ({ code, message }) => ({ base_resp: { status_code: Number(code), status_msg: message } }),
  headers: () => ({}),
  words: {
    requests: minimax('1002', 'rate limit'),
    tokens: minimax('1039', 'token limit'),
    concurrency: minimax('1041', 'conn limit'),
    quota: minimax('1008', 'insufficient balance'),
    long_window: minimax('2056', 'usage limit exceeded'),
    ramp: minimax('2045', 'rate growth limit'),
    overload: minimax('1000', 'unknown error'),
    never_fits: minimax('2013', 'invalid params, context window exceeds limit'),
  },
};

/** OpenRouter. Where a limit of its own is reached, the headers are in the body as well. */
export const OPENROUTER: ProviderForms = {
  body: ({ status = 429, message, extra }, refusal) => ({
    error: {
      message,
      code: status,
      ...(status === 429 && {
        metadata: { ...(extra === undefined && { headers: openrouterLimits(refusal) }), ...extra },
      }),
    },
  }),
  headers: (refusal, { status = 429, extra }): Record<string, string> =>
    status === 429 && extra === undefined
      ? { ...openrouterLimits(refusal), ...retryAfter(refusal) }
      : {},
  words: {
    requests: ({ model }) => ({ message: `Rate limit exceeded: limit_rpm/${model}. ` }),
    long_window: () => ({
      message:
        'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day',
    }),
    overload: ({ model }) => ({
      status: 429,
      message: 'Provider returned error',
      extra: {
        raw: `${model} is temporarily rate-limited upstream. Please retry shortly.`,
        limit_source: 'upstream_provider_shared_pool',
      },
    }),
    quota: () => ({
      status: 402,
      message: 'Insufficient credits. Add more using https://openrouter.ai/settings/credits',
    }),
  },
};

const openrouterLimits = ({ at, limit, waitMs }: StrictRefusal): Record<string, string> => ({
  'X-RateLimit-Limit': String(limit),
  'X-RateLimit-Remaining': '0',
  'X-RateLimit-Reset': String(Math.ceil(at + (waitMs ?? 0))),
});

import type { RecordedProvider, RecordedRefusal } from '../seen-refusal.ts';

function groq(limit: string, again: string): string {
  return JSON.stringify({
    error: {
      message: `Rate limit reached for model 'llama-3.1-8b-instant' in organization 'org_01j1302' service tier 'on_demand' on ${limit}: Limit 6000, Used 4093, Requested 3531. Please try again in ${again}. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing`,
      type: 'tokens',
      code: 'rate_limit_exceeded',
    },
  });
}

function openrouter(message: string, metadata: object, code = 429): string {
  return JSON.stringify({ error: { message, code, metadata }, user_id: 'user_1302' });
}

function cerebras(message: string, code: string): string {
  return JSON.stringify({ message, type: 'too_many_requests_error', param: 'queue', code });
}

/** Providers that run models of others. */
const HOST_REFUSALS: readonly RecordedRefusal[] = [
  {
    name: 'Fireworks, an account that is suspended',
    upstreamId: 'fireworks',
    status: 412,
    body: JSON.stringify({
      error: {
        message:
          'Account example is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices. Please go to https://fireworks.ai/account/billing for more information.',
        param: null,
        code: 'PRECONDITION_FAILED',
        type: 'error',
      },
    }),
    kind: 'quota',
    scope: 'upstream',
  },
  {
    name: 'Groq, tokens per minute',
    upstreamId: 'groq',
    status: 429,
    body: groq('tokens per minute (TPM)', '16.239999999s'),
    kind: 'tokens',
    retryAfterMs: 16_240,
  },
  {
    name: 'Groq, tokens per day',
    upstreamId: 'groq',
    status: 429,
    body: groq('tokens per day (TPD)', '2h31m16.752s'),
    kind: 'long_window',
    retryAfterMs: 9_076_752,
  },
  {
    name: 'Groq, requests per minute',
    upstreamId: 'groq',
    status: 429,
    headers: { 'retry-after': '2' },
    body: groq('requests per minute (RPM)', '1s').replace('"type":"tokens"', '"type":"requests"'),
    kind: 'requests',
    retryAfterMs: 2_000,
  },
  {
    name: 'Groq, too large',
    upstreamId: 'groq',
    status: 413,
    body: '{"error":{"message":"Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 6000, Requested 8238, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}',
    kind: 'never_fits',
  },
  {
    name: 'Groq, flex',
    upstreamId: 'groq',
    status: 498,
    body: '{"error":{"message":"Flex tier capacity exceeded"}}',
    kind: 'overload',
    scope: 'tier',
  },
  {
    name: 'Cerebras, queue',
    upstreamId: 'cerebras',
    status: 429,
    body: cerebras(
      "We're experiencing high traffic right now! Please try again soon.",
      'queue_exceeded',
    ),
    kind: 'overload',
  },
  {
    name: 'Cerebras, tokens',
    upstreamId: 'cerebras',
    status: 429,
    headers: {
      'x-ratelimit-limit-requests-day': '14400',
      'x-ratelimit-remaining-requests-day': '14000',
      'x-ratelimit-reset-requests-day': '33011.382867',
      'x-ratelimit-limit-tokens-minute': '30000',
      'x-ratelimit-remaining-tokens-minute': '120',
      'x-ratelimit-reset-tokens-minute': '45.5',
    },
    body: cerebras('Tokens limit exceeded.', 'token_quota_exceeded'),
    kind: 'tokens',
    retryAfterMs: 45_500,
  },
  {
    name: 'Cerebras, requests of the day',
    upstreamId: 'cerebras',
    status: 429,
    headers: {
      'x-ratelimit-limit-requests-day': '14400',
      'x-ratelimit-remaining-requests-day': '0',
      'x-ratelimit-reset-requests-day': '33011.382867',
    },
    body: cerebras('Requests limit exceeded.', 'request_quota_exceeded'),
    kind: 'long_window',
    retryAfterMs: 33_011_383,
  },
  {
    name: 'Mistral, requests',
    upstreamId: 'mistral',
    status: 429,
    headers: { 'x-ratelimit-limit-req-minute': '60' },
    body: '{"message":"Requests rate limit exceeded"}',
    kind: 'requests',
  },
  {
    name: 'Mistral, a plan without the model',
    upstreamId: 'mistral',
    status: 429,
    headers: { 'x-ratelimit-limit-req-minute': '0' },
    body: '{"message":"Requests rate limit exceeded"}',
    kind: 'quota',
  },
  ...[
    {
      type: 'invalid_request_error',
      code: null,
      message: 'Service tier capacity exceeded for this model.',
    },
    { type: 'service_tier_capacity_exceeded', code: null, message: 'No.' },
    { type: 'invalid_request_error', code: '3505', message: 'No.' },
  ].map((error) => ({
    name: `Mistral, capacity, ${error.type} ${error.code}`,
    upstreamId: 'mistral',
    status: 429,
    body: JSON.stringify({ object: 'error', param: null, ...error }),
    kind: 'overload' as const,
    scope: error.code === '3505' ? ('model' as const) : ('tier' as const),
  })),
  {
    name: 'OpenRouter, day',
    upstreamId: 'openrouter',
    status: 429,
    body: openrouter(
      'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day',
      {
        headers: {
          'X-RateLimit-Limit': '50',
          'X-RateLimit-Remaining': '0',
          'X-RateLimit-Reset': '1791331200000',
        },
        limit_source: 'openrouter_free_tier_daily',
      },
    ),
    kind: 'long_window',
    retryAfterMs: 43_200_000,
  },
  {
    name: 'OpenRouter, minute',
    upstreamId: 'openrouter',
    status: 429,
    headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1791288021000' },
    body: openrouter('Rate limit exceeded: limit_rpm/google/gemini-2.5-pro', {}),
    kind: 'requests',
    retryAfterMs: 21_000,
  },
  {
    name: 'OpenRouter, day of a model',
    upstreamId: 'openrouter',
    status: 429,
    body: openrouter('Rate limit exceeded: limit_rpd/google/gemini-2.5-pro', {}),
    kind: 'long_window',
  },
  ...['openrouter_shared_capacity', 'upstream_provider_shared_pool'].map((limit_source) => ({
    name: `OpenRouter, ${limit_source}`,
    upstreamId: 'openrouter',
    status: 429,
    body: openrouter('Provider returned error', { limit_source }),
    kind: 'overload' as const,
  })),
  {
    name: 'OpenRouter, another provider’s words',
    upstreamId: 'openrouter',
    status: 429,
    body: openrouter('Provider returned error', {
      raw: '{"error":{"message":"Number of concurrent connections has exceeded your rate limit."}}',
      provider_name: 'Anthropic',
    }),
    kind: 'concurrency',
    scope: 'credential',
  },
  {
    name: 'OpenRouter, credits',
    upstreamId: 'openrouter',
    status: 402,
    body: openrouter('Insufficient credits. Add more using https://openrouter.ai/credits', {}, 402),
    kind: 'quota',
    scope: 'upstream',
  },
  {
    name: 'OpenRouter, credits for less',
    upstreamId: 'openrouter',
    status: 402,
    body: openrouter(
      'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 30104.',
      { provider_name: null },
      402,
    ),
    kind: 'never_fits',
  },
  {
    name: 'Workers AI, capacity',
    upstreamId: 'workers-ai',
    status: 429,
    body: '{"errors":[{"message":"AiError: Capacity temporarily exceeded, please try again.","code":3040}],"success":false,"result":{},"messages":[]}',
    kind: 'overload',
  },
  {
    name: 'Workers AI, neurons of the day',
    upstreamId: 'workers-ai',
    status: 429,
    body: '{"errors":[{"message":"AiError: You have used up your free allocation of 10,000 neurons.","code":3036}],"success":false,"result":{},"messages":[]}',
    kind: 'long_window',
    scope: 'upstream',
  },
  {
    name: 'W&B, concurrency',
    upstreamId: 'wandb',
    status: 429,
    body: '{"error":{"message":"Concurrency limit reached for requests"}}',
    kind: 'concurrency',
    scope: 'credential',
  },
  {
    name: 'W&B, quota',
    upstreamId: 'wandb',
    status: 402,
    body: '{"error":{"message":"You exceeded your current quota"}}',
    kind: 'quota',
    scope: 'upstream',
  },
  {
    name: 'Neuralwatt, concurrency',
    upstreamId: 'neuralwatt',
    status: 429,
    body: '{"error":{"code":"concurrent_budget_exceeded","message":"Too much at once."}}',
    kind: 'concurrency',
    scope: 'credential',
  },
  {
    name: 'Together, below its rate',
    upstreamId: 'together',
    status: 503,
    body: '{"error":{"message":"The server is not ready yet.","type":"service_unavailable"}}',
    kind: 'overload',
  },
  {
    name: 'Together, above its rate',
    upstreamId: 'together',
    status: 429,
    body: '{"error":{"message":"You have been rate limited."}}',
    kind: 'unknown',
  },
  {
    name: 'a gateway',
    upstreamId: 'mine',
    status: 429,
    body: '<html><body>Concurrency per day, RPM, insufficient balance</body></html>',
    kind: 'unknown',
  },
  { name: 'a broken gateway', upstreamId: 'mine', status: 502, body: 'Bad gateway', kind: 'error' },
];

export const SEEN: RecordedProvider = { refusals: HOST_REFUSALS };

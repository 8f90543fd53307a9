import type { RecordedProvider, RecordedRefusal } from '../seen-refusal.ts';

function openai(message: string, type: string, code: string): string {
  return JSON.stringify({ error: { message, type, param: null, code } });
}

function anthropic(message: string, details?: object, type = 'rate_limit_error'): string {
  const error = details === undefined ? { type, message } : { type, message, details };
  return JSON.stringify({ type: 'error', error, request_id: 'req_011CXb1302' });
}

const QUOTA_MESSAGE =
  'You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs.';

const OPENAI_REFUSALS: readonly RecordedRefusal[] = [
  {
    name: 'tokens per minute',
    status: 429,
    body: openai(
      'Rate limit reached for gpt-4o in organization org-1302 on tokens per min (TPM): Limit 30000, Used 30000, Requested 890. Please try again in 1.78s. Visit https://platform.openai.com/account/rate-limits to learn more.',
      'tokens',
      'rate_limit_exceeded',
    ),
    kind: 'tokens' as const,
    retryAfterMs: 1_780,
  },
  {
    name: 'requests per minute',
    status: 429,
    body: openai(
      'Rate limit reached for gpt-4o in organization org-1113 on requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again in 120ms.',
      'requests',
      'rate_limit_exceeded',
    ),
    kind: 'requests' as const,
    retryAfterMs: 120,
  },
  {
    name: 'requests per day',
    status: 429,
    body: openai(
      'Rate limit reached for gpt-4o in organization org-1 on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s.',
      'requests',
      'rate_limit_exceeded',
    ),
    kind: 'long_window' as const,
    retryAfterMs: 432_000,
  },
  {
    name: 'too large for the minute',
    status: 429,
    body: openai(
      'Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 40123. The input or output tokens must be reduced in order to run successfully.',
      'tokens',
      'rate_limit_exceeded',
    ),
    kind: 'never_fits' as const,
  },
  {
    name: 'ramp',
    status: 429,
    headers: { 'retry-after': '15' },
    body: openai('Slow down.', 'rate_limit_error', 'slow_down'),
    kind: 'ramp' as const,
    retryAfterMs: 15_000,
  },
  ...[
    'insufficient_quota',
    'credit_balance_exhausted',
    'organization_spend_limit_exceeded',
    'project_spend_limit_exceeded',
    'organization_usage_limit_exceeded',
  ].map((code) => ({
    name: `quota, ${code}`,
    status: 429,
    body: openai(QUOTA_MESSAGE, 'insufficient_quota', code),
    kind: 'quota' as const,
    scope: 'upstream' as const,
  })),
  {
    name: 'quota, code alone',
    status: 403,
    body: openai('Spent.', 'billing', 'project_spend_limit_exceeded'),
    kind: 'quota' as const,
    scope: 'upstream' as const,
  },
  {
    name: 'quota, text alone',
    status: 429,
    body: JSON.stringify({ error: { message: QUOTA_MESSAGE } }),
    kind: 'quota' as const,
    scope: 'upstream' as const,
  },
  {
    name: 'flex',
    status: 429,
    body: '{"error":{"message":"Resource Unavailable"}}',
    kind: 'overload' as const,
    scope: 'tier' as const,
  },
  ...['billing_hard_limit_reached', 'billing_not_active'].map((code) => ({
    name: code,
    status: 400,
    body: openai('Check your billing details.', 'invalid_request_error', code),
    kind: 'quota' as const,
    scope: 'upstream' as const,
  })),
  {
    name: 'flex, with a code',
    status: 429,
    body: openai('x', 'resource_unavailable_error', 'rate_limit_exceeded'),
    kind: 'overload' as const,
    scope: 'tier' as const,
  },
  {
    name: 'an engine',
    status: 429,
    body: openai('x', 'server_error', 'engine_overloaded'),
    kind: 'overload' as const,
  },
  {
    name: 'images per minute',
    status: 429,
    body: openai('Rate limit reached for images per minute.', 'images', 'rate_limit_exceeded'),
    kind: 'requests' as const,
  },
  {
    name: 'overload, as an event of a stream',
    status: 503,
    body: 'event: error\ndata: {"type":"error","code":"server_is_overloaded","message":"Our servers are busy."}\n\n',
    kind: 'overload' as const,
  },
  {
    name: 'a 429 that says no more',
    status: 429,
    headers: {
      'x-ratelimit-remaining-requests': '10',
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '6m0s',
    },
    body: openai('Rate limit reached.', 'rate_limit_error', 'rate_limit_exceeded'),
    kind: 'unknown' as const,
    retryAfterMs: 360_000,
  },
  {
    name: 'an error',
    status: 500,
    headers: { 'retry-after': '2' },
    body: openai('The server had an error while processing your request.', 'server_error', 'x'),
    kind: 'error' as const,
    retryAfterMs: 2_000,
  },
].map((row) => ({ ...row, upstreamId: 'openai' }));

const ANTHROPIC_REFUSALS: readonly RecordedRefusal[] = [
  ...['input', 'output'].map((kind) => ({
    name: `${kind} tokens per minute`,
    status: 429,
    headers: { 'retry-after': '41' },
    body: anthropic(
      `This request would exceed your organization's rate limit of 30,000 ${kind} tokens per minute (org: 1d5a, model: claude-sonnet-4-6). For details, refer to: https://docs.claude.com/en/api/rate-limits.`,
    ),
    kind: 'tokens' as const,
    retryAfterMs: 41_000,
  })),
  {
    name: 'requests per minute',
    status: 429,
    body: anthropic(
      "This request would exceed your organization's rate limit of 50 requests per minute (org: 1d5a).",
    ),
    kind: 'requests' as const,
  },
  {
    name: 'concurrent connections',
    status: 429,
    body: anthropic(
      'Number of concurrent connections has exceeded your rate limit. Please try again later or contact sales at https://www.anthropic.com/contact-sales to discuss your options.',
    ),
    kind: 'concurrency' as const,
    scope: 'credential' as const,
  },
  {
    name: 'ramp, whose message speaks of tokens',
    status: 429,
    headers: { 'retry-after': '7' },
    body: anthropic('Your input tokens per minute grew too fast.', {
      error_code: 'ramp_limit_exceeded',
    }),
    kind: 'ramp' as const,
    retryAfterMs: 7_000,
  },
  ...[
    { status: 429, code: 'enforced_spend_limit_reached' },
    { status: 400, code: 'contract_spend_limit_reached' },
  ].map(({ status, code }) => ({
    name: `spend, ${status}`,
    status,
    body: anthropic('You have reached your specified API usage limits.', { error_code: code }),
    kind: 'quota' as const,
    scope: 'upstream' as const,
  })),
  {
    name: 'billing',
    status: 402,
    body: anthropic('Payment required.', undefined, 'billing_error'),
    kind: 'quota' as const,
    scope: 'upstream' as const,
  },
  {
    name: 'credit balance',
    status: 400,
    body: anthropic(
      'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
      undefined,
      'invalid_request_error',
    ),
    kind: 'quota' as const,
    scope: 'upstream' as const,
  },
  {
    name: 'overload',
    status: 529,
    body: anthropic('Overloaded', undefined, 'overloaded_error'),
    kind: 'overload' as const,
    scope: 'upstream' as const,
  },
  {
    name: 'long context that the plan does not include',
    status: 429,
    body: anthropic('Extra usage is required for long context requests.'),
    kind: 'never_fits' as const,
  },
  ...[
    'Extra usage is required for 1M context.',
    'The long context beta is not yet available for this subscription.',
    "You're out of extra usage. Add more at claude.ai/settings/usage and keep going.",
  ].map((message) => ({
    name: message,
    status: 400,
    body: anthropic(message, undefined, 'invalid_request_error'),
    kind: 'never_fits' as const,
  })),
  {
    name: 'long context, at a gateway of another name',
    upstreamId: 'seat',
    status: 429,
    body: anthropic('This request requires extra usage: long context.'),
    kind: 'never_fits' as const,
  },
  {
    name: 'a limit that the account has set',
    status: 400,
    body: anthropic(
      'You have reached your specified API usage limits. You will regain access on 2026-10-07 at 00:00 UTC.',
      undefined,
      'invalid_request_error',
    ),
    kind: 'long_window' as const,
    scope: 'credential' as const,
    retryAfterMs: 43_200_000,
  },
  {
    name: 'overload that says it is no usage limit',
    status: 429,
    body: anthropic('Server is temporarily limiting requests (not your usage limit)'),
    kind: 'overload' as const,
  },
  {
    name: 'a session',
    status: 429,
    body: anthropic("You've hit your session limit"),
    kind: 'long_window' as const,
    scope: 'credential' as const,
  },
  {
    name: 'a body beyond its bound',
    status: 413,
    body: anthropic('Request exceeds the maximum size', undefined, 'request_too_large'),
    kind: 'never_fits' as const,
  },
].map((row) => ({ upstreamId: 'anthropic', ...row }));

export const SEEN: RecordedProvider = { refusals: [...OPENAI_REFUSALS, ...ANTHROPIC_REFUSALS] };

import type { RecordedProvider, RecordedRefusal } from '../seen-refusal.ts';

function wrapped(message: string, type: string): string {
  return JSON.stringify({ error: { message, type } });
}

/** Refusals of accounts, whatever the status. */
const OF_ACCOUNTS: readonly RecordedRefusal[] = [
  {
    name: 'SiliconFlow, balance',
    upstreamId: 'siliconflow-cn',
    status: 403,
    body: '{"code":30001,"message":"Sorry, your account balance is insufficient","data":null}',
    kind: 'quota',
    scope: 'upstream',
  },
  {
    name: 'OpenRouter, the limit of a key',
    upstreamId: 'openrouter',
    status: 403,
    body: '{"error":{"message":"Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys","code":403}}',
    kind: 'quota',
    scope: 'upstream',
  },
  {
    name: 'xAI, no credits',
    upstreamId: 'xai',
    status: 403,
    body: JSON.stringify({
      code: 'The caller does not have permission to execute the specified operation',
      error:
        "Your newly created team doesn't have any credits or licenses yet. You can purchase those on https://console.x.ai/team/4711.",
    }),
    kind: 'quota',
    scope: 'upstream',
  },
  {
    name: 'Kimi for coding, a billing cycle',
    upstreamId: 'kimi-code',
    status: 403,
    body: wrapped(
      "You've reached your usage limit for this billing cycle. Your quota will be refreshed in the next cycle. Upgrade to get more: https://www.kimi.com/code/console",
      'access_terminated_error',
    ),
    kind: 'long_window',
    scope: 'upstream',
  },
  ...['hour', 'week', 'month'].map((window) => ({
    name: `DashScope's coding plan, a ${window}`,
    upstreamId: 'dashscope-coding',
    status: 429,
    body: wrapped(`${window} allocated quota exceeded.`, 'insufficient_quota'),
    kind: 'long_window' as const,
    scope: 'credential' as const,
  })),
  ...['project has exceeded its monthly spending cap.', 'prepayment credits are depleted.'].map(
    (words) => ({
      name: `Gemini, ${words}`,
      upstreamId: 'gemini',
      status: 429,
      body: JSON.stringify({
        error: { code: 429, message: `Your ${words}`, status: 'RESOURCE_EXHAUSTED' },
      }),
      kind: 'quota' as const,
      scope: 'upstream' as const,
    }),
  ),
  ...(
    [
      ['ModelAccountTpmRateLimitExceeded', 'tokens', 'model'],
      ['ModelAccountRpmRateLimitExceeded', 'requests', 'model'],
      ['RequestBurstTooFast', 'ramp', 'model'],
      ['ServerOverloaded', 'overload', 'model'],
      ['AccountQuotaExceeded', 'long_window', 'credential'],
      ['AccountOverdueError', 'quota', 'upstream'],
    ] as const
  ).map(([code, kind, scope]) => ({
    name: `Volcengine, ${code}`,
    upstreamId: 'ark',
    status: code === 'AccountOverdueError' ? 403 : 429,
    body: JSON.stringify({ error: { code, message: 'x', param: '', type: 'TooManyRequests' } }),
    kind,
    scope,
  })),
  ...(
    [
      ['siliconflow', '{"code":50603,"message":"System is too busy now."}'],
      ['groq', '{"error":{"message":"llama is currently over capacity."}}'],
      ['azure', '{"error":{"code":"NoCapacity","message":"The server is currently busy"}}'],
    ] as const
  ).map(([upstreamId, body]) => ({
    name: `busy, ${upstreamId}`,
    upstreamId,
    status: 429,
    body,
    kind: 'overload' as const,
  })),
];

/** Those who refuse in shapes or words of their own. */
const OTHER_REFUSALS: readonly RecordedRefusal[] = [
  ...(
    [
      { code: 1002, kind: 'requests' },
      { code: 1039, kind: 'tokens' },
      { code: 1041, kind: 'concurrency' },
      { code: 2045, kind: 'ramp' },
      { code: 1033, kind: 'error' },
      { code: 1008, kind: 'quota', scope: 'upstream' },
      { code: 2056, kind: 'long_window', scope: 'upstream' },
      { code: 2062, kind: 'long_window', scope: 'upstream' },
    ] as const
  ).flatMap(({ code, ...row }) => [
    {
      name: `MiniMax, ${code} inside a 200`,
      upstreamId: 'minimax',
      status: 200,
      body: JSON.stringify({ base_resp: { status_code: code, status_msg: 'no' } }),
      ...row,
    },
    {
      name: `MiniMax, ${code} in an Anthropic shape`,
      upstreamId: 'minimax-cn',
      status: 429,
      body: `{"type":"error","error":{"type":"rate_limit_error","message":"no (${code})","http_code":"429"}}`,
      ...row,
    },
  ]),
  {
    name: 'DashScope, requests',
    upstreamId: 'dashscope',
    status: 429,
    body: wrapped('You exceeded your current requests list.', 'limit_requests'),
    kind: 'requests',
  },
  {
    name: 'DashScope, requests, native',
    upstreamId: 'dashscope-intl',
    status: 429,
    body: '{"code":"Throttling.RateQuota","message":"Requests rate limit exceeded, please try again later.","request_id":"1113"}',
    kind: 'requests',
  },
  {
    name: 'DashScope, tokens in the words of a quota',
    upstreamId: 'dashscope-intl',
    status: 429,
    body: wrapped(
      'You exceeded your current quota, please check your plan and billing details.',
      'insufficient_quota',
    ),
    kind: 'tokens',
  },
  {
    name: 'DashScope, tokens, native',
    upstreamId: 'dashscope',
    status: 429,
    body: '{"code":"Throttling.AllocationQuota","message":"Allocated quota exceeded, please increase your quota limit."}',
    kind: 'tokens',
  },
  {
    name: 'DashScope, ramp',
    upstreamId: 'dashscope',
    status: 429,
    body: wrapped('Request rate increased too quickly.', 'rate'),
    kind: 'ramp',
  },
  {
    name: 'DashScope, arrears',
    upstreamId: 'dashscope',
    status: 400,
    body: wrapped('Access denied, please make sure your account is in good standing.', 'Arrearage'),
    kind: 'quota',
    scope: 'upstream',
  },
  ...(
    [
      ['too many concurrent requests', 'concurrency'],
      ['you have reached your session usage limit', 'long_window'],
      ['you have reached your weekly usage limit', 'long_window'],
    ] as const
  ).map(([error, kind]) => ({
    name: `Ollama cloud, ${error}`,
    upstreamId: 'ollama',
    status: 429,
    body: JSON.stringify({ error }),
    kind,
    scope: 'upstream' as const,
  })),
  {
    name: 'Ollama, queue full',
    upstreamId: 'home',
    host: '127.0.0.1:11434',
    status: 503,
    body: '{"error":"server busy, please try again.  maximum pending requests exceeded"}',
    kind: 'overload',
    scope: 'upstream',
  },
  ...(
    [
      ['You are using a Trial key, which is limited to 40 API calls / minute.', 'requests'],
      ['You are past the per minute request limit, please wait and try again later.', 'requests'],
      ['trial token rate limit exceeded', 'tokens'],
      ['You are using a Trial key, which is limited to 1000 API calls / month.', 'long_window'],
    ] as const
  ).map(([message, kind]) => ({
    name: `Cohere, ${message}`,
    upstreamId: 'cohere',
    status: 429,
    body: JSON.stringify({ message }),
    kind,
    scope: kind === 'long_window' ? ('credential' as const) : ('model' as const),
  })),
];

export const SEEN: RecordedProvider = { refusals: [...OF_ACCOUNTS, ...OTHER_REFUSALS] };

import type { RecordedProvider, RecordedRefusal } from '../seen-refusal.ts';

function zai(code: string, message: string): string {
  return JSON.stringify({ error: { code, message } });
}

function wrapped(message: string, type: string): string {
  return JSON.stringify({ error: { message, type } });
}

const KIMI_CONCURRENCY =
  'Your account org-1302<ak-1113> request reached max organization concurrency: 1, please try again after';

/** Laboratories whose limit is the number of calls in flight. */
const LAB_REFUSALS: readonly RecordedRefusal[] = [
  {
    name: 'DeepSeek, concurrency',
    upstreamId: 'deepseek',
    status: 429,
    body: wrapped('Too Many Requests', 'unknown_error'),
    kind: 'concurrency',
  },
  {
    name: 'DeepSeek, balance',
    upstreamId: 'deepseek',
    status: 402,
    body: wrapped('Insufficient Balance', 'unknown_error'),
    kind: 'quota',
    scope: 'upstream',
  },
  {
    name: 'DeepSeek, overload',
    upstreamId: 'deepseek',
    status: 503,
    body: wrapped('Server overloaded', 'unknown_error'),
    kind: 'overload',
  },
  {
    name: 'Z.ai, concurrency',
    upstreamId: 'zai',
    status: 429,
    body: zai(
      '1302',
      'High concurrency usage of this API, please reduce concurrency or contact customer service to increase limits',
    ),
    kind: 'concurrency',
  },
  {
    name: 'Z.ai, concurrency, the later message, inside a 200',
    upstreamId: 'zai',
    status: 200,
    body: zai('1302', 'Rate limit reached for requests'),
    kind: 'concurrency',
  },
  {
    name: 'Z.ai, frequency',
    upstreamId: 'zai',
    status: 429,
    body: zai('1303', 'High frequency usage of this API'),
    kind: 'requests',
  },
  {
    name: 'Z.ai, calls of the day',
    upstreamId: 'zai',
    status: 429,
    body: zai('1304', 'Called too often.'),
    kind: 'long_window',
  },
  {
    name: 'Z.ai, overload',
    upstreamId: 'zai',
    status: 429,
    body: zai('1305', 'The service may be temporarily overloaded, please try again later'),
    kind: 'overload',
  },
  {
    name: 'Zhipu, overload, by text',
    upstreamId: 'glm',
    status: 429,
    body: zai('1312', '该模型当前访问量过大，请您稍后再试'),
    kind: 'overload',
  },
  {
    name: 'Z.ai, five hours, in Chinese time',
    upstreamId: 'zai',
    status: 429,
    body: zai(
      '1308',
      'Usage limit reached for 5 hour. Your limit will reset at 2026-10-06 21:31:39',
    ),
    kind: 'long_window',
    scope: 'upstream',
    retryAfterMs: 5_499_000,
  },
  {
    name: 'Zhipu, a week, in Chinese time',
    upstreamId: 'glm',
    host: 'open.bigmodel.cn',
    status: 429,
    body: zai('1310', '您已达到每周/每月使用上限，您的限额将在 2026-10-07 20:00:00 重置'),
    kind: 'long_window',
    scope: 'upstream',
    retryAfterMs: 86_400_000,
  },
  ...['1313', '1316', '1321'].map((code) => ({
    name: `Z.ai, plan, ${code}`,
    upstreamId: 'zai',
    status: 429,
    body: zai(code, 'Plan.'),
    kind: 'long_window' as const,
    scope: 'upstream' as const,
  })),
  {
    name: 'Z.ai, balance',
    upstreamId: 'zai',
    status: 429,
    body: zai('1113', 'Your account is in arrears. Please recharge your account'),
    kind: 'quota',
    scope: 'upstream',
  },
  {
    name: 'Kimi, concurrency',
    upstreamId: 'moonshot',
    status: 429,
    body: wrapped(`${KIMI_CONCURRENCY} 1 seconds`, 'rate_limit_reached_error'),
    kind: 'concurrency',
    scope: 'upstream',
    retryAfterMs: 1_000,
    slotsMax: 1,
  },
  {
    name: 'Kimi, concurrency, at once',
    upstreamId: 'moonshot-cn',
    status: 429,
    body: wrapped(
      `${KIMI_CONCURRENCY.replace(': 1', ': 50')} 0 seconds`,
      'rate_limit_reached_error',
    ),
    kind: 'concurrency',
    scope: 'upstream',
    retryAfterMs: 0,
    slotsMax: 50,
  },
  {
    name: 'Kimi, requests',
    upstreamId: 'moonshot',
    status: 429,
    body: wrapped(
      'Your account org-1<ak-1> request reached organization max RPM: 20, please try again after 1 seconds',
      'rate_limit_reached_error',
    ),
    kind: 'requests',
    scope: 'upstream',
    retryAfterMs: 1_000,
  },
  {
    name: 'Kimi, tokens',
    upstreamId: 'moonshot',
    status: 429,
    body: wrapped(
      'Your account request reached project TPM rate limit, current: 1410, limit: 100',
      'rate_limit_reached_error',
    ),
    kind: 'tokens',
    scope: 'upstream',
  },
  {
    name: 'Kimi, tokens of the day',
    upstreamId: 'moonshot',
    status: 429,
    body: wrapped(
      'Your account request reached organization TPD rate limit, current: 1526210, limit: 1500000',
      'rate_limit_reached_error',
    ),
    kind: 'long_window',
    scope: 'upstream',
  },
  {
    name: 'Kimi, overload',
    upstreamId: 'moonshot',
    status: 429,
    body: wrapped(
      'The engine is currently overloaded, please try again later',
      'engine_overloaded_error',
    ),
    kind: 'overload',
  },
  {
    name: 'Kimi, balance',
    upstreamId: 'moonshot',
    status: 429,
    body: wrapped(
      'Your account org-1<ak-1> is suspended due to insufficient balance, please recharge',
      'exceeded_current_quota_error',
    ),
    kind: 'quota',
    scope: 'upstream',
  },
];

export const SEEN: RecordedProvider = { refusals: LAB_REFUSALS };

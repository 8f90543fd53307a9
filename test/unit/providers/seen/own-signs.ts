import type { RecordedProvider, RecordedRefusal } from '../seen-refusal.ts';

/** Codes that mean something at one provider only. */
const OWN_CODES = {
  'zai: quota, upstream': '1113 1112 1121 1309',
  'zai: quota, model': '1311',
  'zai: long_window, upstream': '1308 1310 1313 1316 1317 1318 1319 1320 1321',
  'zai: long_window, model': '1304',
  'zai: concurrency, model': '1302',
  'zai: overload, model': '1305 1312',
  'zai: requests, model': '1303',
  'zai: error, model': '1230 1234',
  'minimax: quota, upstream': '1008',
  'minimax: long_window, upstream': '2056 2062',
  'minimax: concurrency, model': '1041',
  'minimax: ramp, model': '2045',
  'minimax: tokens, model': '1039',
  'minimax: requests, model': '1002',
  'minimax: error, model': '1000 1001 1024 1033',
  'workers-ai: long_window, upstream': '3036 4006',
  'workers-ai: overload, model': '3040',
  'mistral: overload, model': '3505',
  'gemini: long_window, model': 'quota_exceeded',
  'dashscope: tokens, model': 'Throttling.AllocationQuota',
};

const OWN_PHRASES = [
  ['openrouter', 'Prompt tokens limit exceeded: 230799 > 91442', 'never_fits, call'],
  ['dashscope', 'Free allocated quota exceeded.', 'quota, model'],
  ['dashscope', 'Allocated quota exceeded', 'tokens, model'],
  ['dashscope', 'You exceeded your current quota', 'tokens, model'],
  ['vertex', 'Resource exhausted', 'overload, model'],
  ['gemini', 'Resource has been exhausted', 'overload, model'],
  ['vertex', 'Exceeded the Provisioned Throughput', 'overload, model'],
  ['gemini', 'Quota exceeded for metric: a.b/c, limit: 0, model: m', 'quota, model'],
  ['bedrock', 'Too many requests', 'requests, model'],
] as const;

/** A code that means something else everywhere else. */
const OWN_MEANING: RecordedRefusal = {
  name: 'DashScope, tokens, by the code alone that means an empty account elsewhere',
  upstreamId: 'dashscope',
  status: 429,
  body: '{"error":{"code":"insufficient_quota","message":"No."}}',
  kind: 'tokens',
};

export const SEEN: RecordedProvider = {
  refusals: [OWN_MEANING],
  codes: OWN_CODES,
  phrases: OWN_PHRASES,
};

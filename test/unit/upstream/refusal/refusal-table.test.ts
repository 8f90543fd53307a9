import { describe, expect, test } from 'vitest';
import { classifyRefusal } from '../../../../src/upstream/refusal/classify-refusal.ts';
import { REFUSAL_TABLE } from '../../../../src/upstream/refusal/refusal-table.ts';
import { answer } from './seen-refusal.ts';

function found(error: object, upstreamId = 'openai', status = 429): string {
  const refusal = classifyRefusal(answer({ upstreamId, status, body: JSON.stringify({ error }) }));
  return refusal === null ? 'none' : `${refusal.signal.kind}, ${refusal.scope}`;
}

/** Codes of everybody. */
const CODES = {
  'quota, upstream':
    'insufficient_quota credit_balance_exhausted organization_spend_limit_exceeded project_spend_limit_exceeded organization_usage_limit_exceeded billing_error enforced_spend_limit_reached contract_spend_limit_reached exceeded_current_quota_error Arrearage AllocationQuota.FreeTierOnly',
  'concurrency, model': 'concurrent_budget_exceeded too_many_concurrent_requests',
  'overload, model':
    'overloaded_error engine_overloaded_error server_is_overloaded queue_exceeded MODEL_CAPACITY_EXHAUSTED service_tier_capacity_exceeded openrouter_shared_capacity upstream_provider_shared_pool ModelNotReadyException',
  'ramp, model': 'slow_down ramp_limit_exceeded limit_burst_rate Throttling.BurstRate',
  'tokens, model': 'tokens token_quota_exceeded',
  'requests, model': 'requests request_quota_exceeded Throttling.RateQuota limit_requests',
};

/** Codes that mean something at one provider only. */
const OWN_CODES = {
  'zai: quota, upstream': '1113 1112 1121 1309',
  'zai: quota, model': '1311',
  'zai: long_window, upstream': '1308 1310 1313 1316 1317 1318 1319 1320 1321',
  'zai: long_window, model': '1304',
  'zai: concurrency, model': '1302',
  'zai: overload, model': '1305 1312',
  'zai: requests, model': '1303',
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

/** What messages say where no code does. */
const PHRASES = {
  'never_fits, model': ['Request too large for model'],
  'quota, upstream': [
    'insufficient balance',
    'Your credit balance is too low',
    'You exceeded your current quota',
  ],
  'long_window, model': [
    'per day',
    'free-models-per-day',
    'requests_per_day_per_project',
    'per week',
    'per month',
    '1000 API calls / month',
    '(TPD)',
    '(RPD)',
    'limit_rpd/model',
    'limit_tpd/model',
    'daily limit',
    'weekly token quota',
    'monthly limit',
    'Usage limit reached',
  ],
  'concurrency, model': ['concurrency', 'concurrent connections', 'concurrent requests'],
  'overload, upstream': ['maximum pending requests exceeded'],
  'overload, model': [
    'overloaded',
    'Service tier capacity exceeded',
    'high traffic',
    'Resource Unavailable',
    'out of capacity',
    '该模型当前访问量过大',
  ],
  'ramp, model': ['Request rate increased too quickly', 'acceleration limit'],
  'tokens, model': [
    '(TPM)',
    'limit_tpm/model',
    'tokens per min',
    'token_per_minute',
    'token rate limit',
    'Too many tokens',
  ],
  'requests, model': [
    '(RPM)',
    'RPS',
    'limit_rpm/model',
    'requests per min',
    'request per second',
    'requests_per_minute',
    'per minute request limit',
    '40 API calls / minute',
    'call rate limit',
    'Requests rate limit exceeded',
    'your current requests list',
  ],
  'unknown, model': ['Too Many Requests', 'rpmx', 'limit: 0', 'fewer max_tokens'],
};

const OWN_PHRASES = [
  ['openrouter', 'Prompt tokens limit exceeded: 230799 > 91442', 'never_fits, model'],
  ['dashscope', 'Free allocated quota exceeded.', 'quota, model'],
  ['dashscope', 'Allocated quota exceeded', 'tokens, model'],
  ['dashscope', 'You exceeded your current quota', 'tokens, model'],
  ['vertex', 'Resource exhausted', 'overload, model'],
  ['gemini', 'Resource has been exhausted', 'overload, model'],
  ['vertex', 'Exceeded the Provisioned Throughput', 'overload, model'],
  ['gemini', 'Quota exceeded for metric: a.b/c, limit: 0, model: m', 'quota, model'],
  ['bedrock', 'Too many requests', 'requests, model'],
] as const;

/** Nearly those words, of the same providers. */
const OTHER_PHRASES = [
  ['openrouter', 'fewer max_tokens, but can only afford 0'],
  ['gemini', 'Quota exceeded for metric: a.b/c, limit: 0.5'],
  ['gemini', 'limit: 0'],
  ['vertex', 'Too many requests'],
] as const;

function each(table: Readonly<Record<string, string>>): [code: string, expected: string][] {
  return Object.entries(table).flatMap(([expected, codes]) =>
    codes.split(' ').map((code): [string, string] => [code, expected]),
  );
}

describe('a code alone tells', () => {
  test.each(each(CODES))('%s: %s', (code, expected) => {
    expect(found({ code, message: 'No.' })).toBe(expected);
    expect(found({ type: code, message: 'No.' })).toBe(expected);
  });

  test.each(each(OWN_CODES))('%s at its provider, and nobody else: %s', (code, expected) => {
    const [upstreamId, meaning] = expected.split(': ');
    expect(found({ code, message: 'No.' }, upstreamId)).toBe(meaning);
    expect(found({ code, message: 'No.' })).toBe('unknown, model');
  });

  test('of insufficient quota, but at DashScope: tokens', () => {
    expect(found({ code: 'insufficient_quota' }, 'dashscope')).toBe('tokens, model');
  });

  test('of every row of the table', () => {
    const tested = [...each(CODES), ...each(OWN_CODES)].map(([code]) => code.toLowerCase());
    expect(tested).toEqual(
      expect.arrayContaining(REFUSAL_TABLE.flatMap(({ codes }) => [...(codes ?? [])])),
    );
  });

  test.each(each({ quota: CODES['quota, upstream'] }))('%s with 400 and 403 too', (code) => {
    expect(found({ code }, 'openai', 400)).toBe('quota, upstream');
    expect(found({ code }, 'openai', 403)).toBe('quota, upstream');
  });

  test('but no other code does with 400', () => {
    const others = each(CODES).filter(([, expected]) => !expected.startsWith('quota'));
    for (const [code] of others) expect(found({ code }, 'openai', 400)).toBe('none');
  });
});

describe('words alone tell', () => {
  const rows = Object.entries(PHRASES).flatMap(([expected, phrases]) =>
    phrases.map((phrase) => [phrase, expected] as const),
  );

  test.each(rows)('"%s": %s', (phrase, expected) => {
    expect(found({ message: `Refused: ${phrase}. Bye.` })).toBe(expected);
  });

  test.each(OWN_PHRASES)('at %s, "%s": %s', (upstreamId, phrase, expected) => {
    expect(found({ message: phrase }, upstreamId)).toBe(expected);
  });

  test.each(OWN_PHRASES)('not elsewhere what %s means by "%s"', (_, phrase, expected) => {
    expect(found({ message: phrase })).not.toBe(expected);
  });

  test.each(OTHER_PHRASES)('but nothing does at %s in "%s"', (upstreamId, phrase) => {
    expect(found({ message: phrase }, upstreamId)).toBe('unknown, model');
  });

  test('a low credit balance with 400 at Anthropic', () => {
    const message = 'Your credit balance is too low to access the API';
    expect(found({ message }, 'anthropic', 400)).toBe('quota, upstream');
    expect(found({ message }, 'openai', 400)).toBe('none');
    expect(found({ message: `You wrote: ${message}` }, 'anthropic', 400)).toBe('none');
  });
});

describe('Google’s quotas', () => {
  test.each([
    ['GenerateRequestsPerDayPerProjectPerModel', 'long_window, model'],
    ['generate_requests_per_model_per_day', 'long_window, model'],
    ['GenerateContentInputTokensPerModelPerMinute-FreeTier', 'tokens, model'],
    ['generate_content_paid_tier_input_token_count', 'tokens, model'],
    ['GenerateRequestsPerMinutePerProjectPerModel', 'requests, model'],
    ['SomethingElse', 'unknown, model'],
  ])('%s, whatever the message says of quota: %s', (quotaId, expected) => {
    for (const message of ['You exceeded your current quota', 'Resource has been exhausted']) {
      const error = { message, details: [{ violations: [{ quotaId }] }] };
      expect(found(error, 'gemini')).toBe(expected);
    }
  });
});

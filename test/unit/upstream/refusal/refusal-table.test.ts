import { describe, expect, test } from 'vitest';
import { classifyRefusal } from '../../../../src/upstream/refusal/classify-refusal.ts';
import { COMMON_ROWS } from '../../../../src/upstream/refusal/refusal-table.ts';
import { answer } from '../../providers/seen-refusal.ts';

function found(error: object, upstreamId = 'openai', status = 429): string {
  const refusal = classifyRefusal(answer({ upstreamId, status, body: JSON.stringify({ error }) }));
  return refusal === null ? 'none' : `${refusal.signal.kind}, ${refusal.scope}`;
}

/** Codes of everybody. */
const CODES = {
  'quota, upstream':
    'insufficient_quota credit_balance_exhausted organization_spend_limit_exceeded project_spend_limit_exceeded organization_usage_limit_exceeded billing_error enforced_spend_limit_reached contract_spend_limit_reached exceeded_current_quota_error Arrearage AllocationQuota.FreeTierOnly billing_hard_limit_reached billing_not_active AccountOverdueError',
  'never_fits, call':
    'context_length_exceeded exceed_context_size_error model_max_prompt_tokens_exceeded',
  'long_window, credential': 'usage_limit_reached AccountQuotaExceeded',
  'concurrency, credential': 'concurrent_budget_exceeded too_many_concurrent_requests',
  'overload, model':
    'overloaded_error engine_overloaded_error server_is_overloaded queue_exceeded MODEL_CAPACITY_EXHAUSTED openrouter_shared_capacity upstream_provider_shared_pool ModelNotReadyException engine_overloaded NoCapacity ServerOverloaded',
  'overload, tier':
    'service_tier_capacity_exceeded resource_unavailable resource_unavailable_error capacity_exceeded',
  'ramp, model':
    'slow_down ramp_limit_exceeded limit_burst_rate Throttling.BurstRate RequestBurstTooFast',
  'tokens, model': 'tokens token_quota_exceeded ModelAccountTpmRateLimitExceeded',
  'requests, model':
    'requests request_quota_exceeded Throttling.RateQuota limit_requests ModelAccountRpmRateLimitExceeded',
};

/** Messages that say it where no code does. */
const PHRASES = {
  'never_fits, call': ['Request too large for model'],
  'quota, upstream': [
    'insufficient balance',
    'Your credit balance is too low',
    'You exceeded your current quota',
  ],
  'long_window, model': [
    'per day',
    'free-models-per-day',
    'requests_per_day_per_project',
    '(TPD)',
    '(RPD)',
    'limit_rpd/model',
    'limit_tpd/model',
    'daily limit',
  ],
  'long_window, credential': [
    'per week',
    'per month',
    '1000 API calls / month',
    'weekly token quota',
    'monthly limit',
    'Usage limit reached',
  ],
  'concurrency, credential': ['concurrency', 'concurrent connections', 'concurrent requests'],
  'overload, upstream': ['maximum pending requests exceeded'],
  'overload, model': ['overloaded', 'high traffic', 'out of capacity', '该模型当前访问量过大'],
  'overload, tier': ['Service tier capacity exceeded', 'Resource Unavailable'],
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

  test('of insufficient quota, but at DashScope: tokens', () => {
    expect(found({ code: 'insufficient_quota' }, 'dashscope')).toBe('tokens, model');
  });

  test('of every row of the table', () => {
    const tested = each(CODES).map(([code]) => code.toLowerCase());
    expect(tested).toEqual(
      expect.arrayContaining(COMMON_ROWS.flatMap(({ codes }) => [...(codes ?? [])])),
    );
  });

  const WITH_400 = ['quota, upstream', 'never_fits, call'];
  const isWith400 = ([, expected]: readonly [string, string]) => WITH_400.includes(expected);

  test.each(each(CODES).filter(isWith400))('%s with 400 and 403 too: %s', (code, expected) => {
    expect(found({ code }, 'openai', 400)).toBe(expected);
    expect(found({ code }, 'openai', 403)).toBe(expected);
  });

  test('but no other code does with 400', () => {
    const others = each(CODES).filter((row) => !isWith400(row));
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

describe('of two rows that hold', () => {
  test.each<[string, string, number, object]>([
    // What a provider says of itself goes before what everybody says.
    ['long_window, model', 'zai', 429, { code: '1304', message: 'concurrency' }],
    ['quota, model', 'zai', 429, { code: '1311', message: 'insufficient balance' }],
    // A sign of an empty account, or of an upstream that is down, goes before that.
    ['quota, upstream', 'zai', 402, { code: '1311', message: 'No.' }],
    ['quota, upstream', 'zai', 429, { code: '1311', type: 'billing_error' }],
    ['overload, upstream', 'zai', 529, { code: '1305', message: 'No.' }],
    // But not before a call that is too dear.
    ['never_fits, call', 'openrouter', 402, { message: 'prompt tokens limit exceeded' }],
    // A model that the plan lacks comes last of what is not paid for.
    [
      'quota, upstream',
      'dashscope',
      429,
      { message: 'Free allocated quota exceeded, credit balance' },
    ],
    ['quota, model', 'dashscope', 429, { message: 'Free allocated quota exceeded per day' }],
    // Kinds go by what waiting cannot mend.
    ['quota, upstream', 'openai', 429, { message: 'insufficient balance, usage limit per day' }],
    ['long_window, model', 'openai', 429, { message: 'concurrency per day' }],
    ['concurrency, credential', 'openai', 429, { message: 'concurrency, RPM, TPM, overloaded' }],
    ['overload, model', 'openai', 429, { message: 'RPM, TPM, increased too quickly, overloaded' }],
    ['ramp, model', 'openai', 429, { message: 'RPM, TPM, increased too quickly' }],
    ['tokens, model', 'openai', 429, { message: 'RPM, TPM' }],
  ])('it is %s: %s, %i, %j', (expected, upstreamId, status, error) => {
    expect(found(error, upstreamId, status)).toBe(expected);
  });
});

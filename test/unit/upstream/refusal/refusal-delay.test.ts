import { describe, expect, test } from 'vitest';
import {
  classifyRefusal,
  type UpstreamAnswer,
} from '../../../../src/upstream/refusal/classify-refusal.ts';
import { answer, NOW, type SeenAnswer } from '../../providers/seen-refusal.ts';

function withMessage(message: string, changes: Partial<SeenAnswer> = {}): UpstreamAnswer {
  return answer({ body: JSON.stringify({ error: { message } }), ...changes });
}

describe('the delay', () => {
  const message = 'Rate limit (RPM). Please try again in 5s.';
  const reset = {
    'x-ratelimit-limit-requests': '60',
    'x-ratelimit-remaining-requests': '0',
    'x-ratelimit-reset-requests': '6s',
  };
  const google = {
    details: [{ retryDelay: '4s' }],
    metadata: { headers: { 'X-RateLimit-Reset': String(NOW + 5_500) } },
  };
  const all = {
    'retry-after-ms': '1000',
    'x-ms-retry-after-ms': '2000',
    'retry-after': '3',
    ...reset,
  };

  test.each([
    ['retry-after-ms', [], message, 1_000],
    ['x-ms-retry-after-ms', ['retry-after-ms'], message, 2_000],
    ['retry-after', ['retry-after-ms', 'x-ms-retry-after-ms'], message, 3_000],
  ] as const)('is that of %s first', (_, without, text, expected) => {
    const headers = new Headers(all);
    for (const name of without) headers.delete(name);
    const body = JSON.stringify({ error: { message: text, ...google } });
    expect(classifyRefusal(answer({ headers, body }))?.signal.retryAfterMs).toBe(expected);
  });

  test.each([
    ['RetryInfo', { message, ...google }, 4_000],
    ['the text', { message, metadata: google.metadata }, 5_000],
    ['the reset in the metadata', { message: 'RPM', metadata: google.metadata }, 5_500],
    ['the reset of the dimension', { message: 'RPM' }, 6_000],
  ])('then that of %s', (_, error, expected) => {
    const seen = { headers: new Headers(reset), body: JSON.stringify({ error }) };
    expect(classifyRefusal(answer(seen))?.signal.retryAfterMs).toBe(expected);
  });

  test.each([
    ['try again in 1m2.3s', 62_300],
    ['Please try again in 20ms.', 20],
    ['retry after 4 seconds', 4_000],
    ['Please retry in 15.06s.', 15_060],
    ['Please retry your request in 2 minutes', 120_000],
    ['try again in 6 minutes and 5 seconds', 365_000],
    ['try again in 1 hour', 3_600_000],
    ['try again in 1 day', 86_400_000],
    ['The account is used up for 13,873 s.', 13_873_000],
    ['Please try again 45 seconds later', 45_000],
    ['Time until reset: 45 seconds', 45_000],
    ['Rate limited for 2 minutes', 120_000],
    ['请5分30秒后再试', 330_000],
    ['请在1小时30分钟后重试', 5_400_000],
    ['try again in a while. Try again in 3s', 3_000],
    ['try again in 3 sheep', null],
    ['try again later', null],
    ['try again after 2026', null],
    ['resets at 2026-10-06 13:00:00', null],
    ['resets at 2026-10-06T13:00:00Z', 3_600_000],
    ['resets at 2026-10-06 13:00:00+01:00', 0],
  ])('of "%s" is %s', (text, expected) => {
    expect(classifyRefusal(withMessage(text))?.signal.retryAfterMs).toBe(expected);
  });

  test('of a rate of minutes that is longer than any client waits makes it a long window', () => {
    const ten = classifyRefusal(
      withMessage('RPM', { headers: new Headers({ 'retry-after': '600' }) }),
    );
    expect(ten).toMatchObject({
      signal: { kind: 'requests', retryAfterMs: 600_000 },
      isFinal: false,
    });
    const more = classifyRefusal(
      withMessage('RPM', { headers: new Headers({ 'retry-after': '601' }) }),
    );
    expect(more).toMatchObject({
      signal: { kind: 'long_window', retryAfterMs: 601_000 },
      isFinal: true,
    });
  });

  test('of an overload may be as long as it likes', () => {
    const headers = new Headers({ 'retry-after': '3600' });
    const found = classifyRefusal(answer({ status: 503, headers }));
    expect(found).toMatchObject({
      signal: { kind: 'overload', retryAfterMs: 3_600_000 },
      isFinal: false,
    });
  });

  test('of a dimension is not that of another', () => {
    const headers = new Headers(reset);
    expect(classifyRefusal(withMessage('TPM', { headers }))?.signal.retryAfterMs).toBeNull();
    expect(
      classifyRefusal(withMessage('concurrency', { headers }))?.signal.retryAfterMs,
    ).toBeNull();
  });

  test('of two dimensions that are used up is the longer', () => {
    const headers = new Headers({
      ...reset,
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '9s',
    });
    expect(classifyRefusal(withMessage('no', { headers }))?.signal.retryAfterMs).toBe(9_000);
  });
});

describe('fields of a provider', () => {
  const inS = (seconds: number) => Math.round(NOW / 1_000) + seconds;

  test.each<[string, object, number | null]>([
    [
      'ChatGPT',
      { error: { type: 'usage_limit_reached', resets_in_seconds: 13_873, resets_at: inS(9) } },
      13_873_000,
    ],
    [
      'ChatGPT, the instant alone',
      { error: { type: 'usage_limit_reached', resets_at: inS(90) } },
      90_000,
    ],
    ['Replicate', { detail: 'Request was throttled.', status: 429, retry_after: 30 }, 30_000],
    [
      'Code Assist',
      { error: { message: 'x', details: [{ metadata: { quotaResetDelay: '54.2s' } }] } },
      54_200,
    ],
    ['milliseconds', { error: { message: 'x', retry_after_ms: 1_500 } }, 1_500],
    ['camel case', { error: { message: 'x', retryAfter: '7' } }, 7_000],
    [
      'headers in the body',
      { error: { message: 'x', metadata: { headers: { 'Retry-After': '8' } } } },
      8_000,
    ],
    ['in the data of an error', { error: { message: 'x', data: { retry_after: 31 } } }, 31_000],
    ['beside an error', { error: { message: 'x' }, data: { retry_after: 31 } }, 31_000],
    [
      'seconds in its name',
      { error: { message: 'x', rate_limit: { retry_after_seconds: 32 } } },
      32_000,
    ],
    [
      "a span of Google's protocol",
      { error: { message: 'x', details: [{ retryDelay: { seconds: 44, nanos: 500_000_000 } }] } },
      44_500,
    ],
    ['its seconds as text', { error: { message: 'x', retry_delay: { seconds: '44' } } }, 44_000],
    ['a code among such data', { error: { message: 'x', data: { retry_after: {} } } }, null],
    ['a field of something else', { error: { message: 'x', request: { retry_after: 9 } } }, null],
    ['junk', { error: { message: 'x', retry_after: 'soon', resets_at: -1 } }, null],
  ])('%s', (_, body, expected) => {
    const seen = { headers: new Headers(), body: JSON.stringify(body) };
    expect(classifyRefusal(answer(seen))?.signal.retryAfterMs).toBe(expected);
  });

  test('of a model that is still loading name the time until it is ready', () => {
    const body = JSON.stringify({ error: 'Model x is currently loading', estimated_time: 20.5 });
    const seen = { status: 503, headers: new Headers(), body };
    expect(classifyRefusal(answer(seen))?.signal).toMatchObject({
      kind: 'overload',
      retryAfterMs: 20_500,
    });
  });

  test.each([
    ['Request was throttled. Expected available in 30 seconds.', 30_000],
    [
      'Rate limit of 50 per 86400s exceeded. Please wait 17361 seconds before retrying.',
      17_361_000,
    ],
    ['Your quota will reset after 54s.', 54_000],
    ['Your quota will reset after 3h51m10s.', 13_870_000],
    ['The limit resets in 2 hours 5 minutes', 7_500_000],
    ['Please wait for about 20 seconds', 20_000],
    ['Cooldown of 15 seconds', 15_000],
    ['Retry-After: 12s', 12_000],
    ['The model "wait 9999 seconds" is overloaded', null],
    ['Waited 30 seconds in the queue', null],
    ['Please retry in ~5s', 5_000],
    ['Retry-After: 30', 30_000],
    ['Too many requests, retry after 30.', 30_000],
    ['Quota will be replenished in 02:41:12.', 9_672_000],
    ['Quota will be replenished in 1.00:00:05.', 86_405_000],
    ['You will regain access on 2026-10-07 at 00:00 UTC.', 43_200_000],
    ['Limit resets at: 2026-10-06 12:02:00 UTC', 120_000],
    ['It will reset at 2026-10-06 20:30:00 +0800 CST.', 1_800_000],
    [`Claude AI usage limit reached|${String(NOW / 1_000 + 90)}`, 90_000],
    ['Limit 30 requests in 60 seconds', null],
    ['Usage limit reached. Try again in 13,873 seconds.', 13_873_000],
    ['Please wait 1,500,000 ms', 1_500_000],
    ['Try again in 1 hour, 23 minutes, and 4 seconds.', 4_984_000],
    ['Try again in 1 hour & 30 minutes', 5_400_000],
    ['Try again in 5-10 seconds', 10_000],
    ['Try again in up to 30 seconds', 30_000],
    ['Retry in: 45s', 45_000],
    ['Wait time: 45 seconds', 45_000],
    ['Rate limited (retry_after=30)', 30_000],
    ['Please try again in\u00a020\u00a0seconds', 20_000],
    ['Please try again in **20 seconds**', 20_000],
    ['Try again in an hour.', 3_600_000],
    ['Try again in about half an hour', 1_800_000],
    ['Please wait two minutes', 120_000],
    ['The limit resets in 1 week', 604_800_000],
    ['Try again in 1 month', 2_592_000_000],
    ['Please try again in a few minutes', null],
    ['Please try again in a moment', null],
    ['Rate limit reset in: 30s', 30_000],
    ['Next request allowed in 30 seconds', 30_000],
    ['Your key is blocked for 24 hours', 86_400_000],
    ['Cooling down for 45s', 45_000],
    ['429 Quota exceeded. [violations {\n}\n, retry_delay {\n  seconds: 42\n}\n]', 42_000],
    ['请求过于频繁，请在 30 秒后重试', 30_000],
    ['您已达到上限，请 5 分钟之后再试', 300_000],
    ['请 2 个小时后重试', 7_200_000],
    ['每 60 秒最多 10 次请求', null],
  ])('text: %s', (message, expected) => {
    const seen = withMessage(message, { headers: new Headers() });
    expect(classifyRefusal(seen)?.signal.retryAfterMs).toBe(expected);
  });
});

describe('a time of day or a date in the text', () => {
  const HOUR_MS = 3_600_000;

  // It is noon in UTC: 8:00 in New York, 5:00 in Los Angeles, 14:00 in Berlin.
  test.each<[string, number | null]>([
    ["You've hit your limit · resets 3pm (America/New_York)", 7 * HOUR_MS],
    ['Your limit will reset at 3:30pm (Europe/Berlin).', 1.5 * HOUR_MS],
    ['resets 7am (America/New_York)', 23 * HOUR_MS],
    ['resets at 14:30 UTC', 2.5 * HOUR_MS],
    ['resets 12am (UTC)', 12 * HOUR_MS],
    ['resets 12pm (UTC)', 0],
    ['It resets at 11:58 UTC', 0],
    ['It resets at 11:50 UTC', 24 * HOUR_MS - 600_000],
    ['Try again at midnight UTC', 12 * HOUR_MS],
    ['The quota resets daily at midnight Pacific Time', 19 * HOUR_MS],
    ['Available again at noon ET', 4 * HOUR_MS],
    ['Please try again tomorrow.', 12 * HOUR_MS],
    ['Try again tomorrow at 9am (Asia/Tokyo)', 12 * HOUR_MS],
    ['Blocked until tomorrow', 12 * HOUR_MS],
    ['resets Oct 9, 3pm (Europe/Berlin)', 73 * HOUR_MS],
    ['resets on October 9, 2026 at 00:00 UTC', 60 * HOUR_MS],
    ['Access returns: try again on 9 October 2026', 60 * HOUR_MS],
    ['resets Thu 12:00 AM (UTC)', 36 * HOUR_MS],
    ['resets Tue 11am (UTC)', 167 * HOUR_MS],
    // The clocks of Berlin go back on 25 October.
    ['resets Oct 26, 12pm (Europe/Berlin)', 20 * 24 * HOUR_MS - HOUR_MS],
    ['Try again after Tue, 06 Oct 2026 12:01:00 GMT', 60_000],
    [`Reset at: ${String(NOW / 1_000 + 90)}`, 90_000],
    ['Resets Friday, October 9, 2026 at 1:00 PM UTC', 73 * HOUR_MS],
    ['Resets on Tue, Oct 6 at 1pm (UTC)', HOUR_MS],
    ['resets at Tue Oct 06 2026 13:00:00 GMT+0000 (Coordinated Universal Time)', HOUR_MS],
    ['resets at Tue Oct 06 2026 14:00:00 GMT+0100', HOUR_MS],
    ['Blocked until 2026-10-06 13:00:00 (UTC)', HOUR_MS],
    ['resets at 13:00:30 UTC', HOUR_MS + 30_000],
    // Its zone is not known.
    ['Try again at 3:05 PM.', null],
    ['resets Mon 12:00 AM', null],
    ['resets at midnight', null],
    ['resets 3pm (Atlantis/Town)', null],
    ['resets 13pm (UTC)', null],
    ['resets at 25:00 UTC', null],
    ['resets today', null],
    ['The model "resets 3pm (UTC)" is limited', null],
    ['3pm (UTC)', null],
  ])('%s', (message, expected) => {
    const seen = withMessage(message, { headers: new Headers() });
    expect(classifyRefusal(seen)?.signal.retryAfterMs).toBe(expected);
  });

  test('in the zone of a provider that names none', () => {
    const seen = withMessage('It will reset at 21:00', { upstreamId: 'zai' });
    expect(classifyRefusal(seen)?.signal.retryAfterMs).toBe(HOUR_MS);
  });
});

describe('headers that name the end of a window', () => {
  const now = Math.round(NOW / 1_000);
  const codex = (percent: string, window = 'primary') => ({
    [`x-codex-${window}-used-percent`]: percent,
    [`x-codex-${window}-window-minutes`]: '300',
    [`x-codex-${window}-reset-after-seconds`]: '400',
  });
  const unified = (status: string, window = '') => ({
    [`anthropic-ratelimit-unified-${window}status`]: status,
    [`anthropic-ratelimit-unified-${window}reset`]: String(now + 500),
  });

  test.each<[string, Record<string, string>, number | null]>([
    ['a used-up window', codex('100'), 400_000],
    ['one of which more is used', codex('104.5'), 400_000],
    ['one that has room', codex('99.5'), null],
    [
      'the instant of its reset',
      { 'x-codex-secondary-used-percent': '100', 'x-codex-secondary-reset-at': String(now + 300) },
      300_000,
    ],
    [
      'the later of two',
      {
        ...codex('100'),
        'x-codex-secondary-used-percent': '100',
        'x-codex-secondary-reset-after-seconds': '450',
      },
      450_000,
    ],
    ['a rejected subscription', unified('rejected'), 500_000],
    ['a rejected window', { ...unified('allowed'), ...unified('rejected', '5h-') }, 500_000],
    ['one that is allowed', unified('allowed_warning', '7d-'), null],
    ['a shorter Retry-After beside them', { ...codex('100'), 'retry-after': '9' }, 400_000],
    ['a longer one', { ...codex('100'), 'retry-after': '500' }, 500_000],
    [
      'a counter without a dimension',
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '17' },
      17_000,
    ],
    ['one that has some left', { 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '17' }, null],
    ["the IETF's field", { ratelimit: '"api";r=0;t=55' }, 55_000],
    ['the same with some left', { ratelimit: '"api";r=10;t=55' }, null],
  ])('%s', (_, headers, expected) => {
    const seen = withMessage('Too many requests', { headers: new Headers(headers) });
    expect(classifyRefusal(seen)?.signal.retryAfterMs).toBe(expected);
  });
});

describe('windows of a plan', () => {
  const rejected = (window: string) => ({
    [`anthropic-ratelimit-unified-${window}status`]: 'rejected',
    [`anthropic-ratelimit-unified-${window}reset`]: String(Math.round(NOW / 1_000) + 13_873),
  });

  test.each<[string, Record<string, string>, string]>([
    ['of the whole account', rejected(''), 'credential'],
    ['of five hours', { ...rejected('5h-'), ...rejected('') }, 'credential'],
    ['of one model', { ...rejected('7d_opus-'), ...rejected('') }, 'model'],
    [
      'of ChatGPT',
      { 'x-codex-primary-used-percent': '100', 'x-codex-primary-reset-after-seconds': '13873' },
      'credential',
    ],
  ])('%s: what they hold', (_, headers, scope) => {
    const seen = withMessage('Error', { headers: new Headers(headers) });
    expect(classifyRefusal(seen)).toMatchObject({
      signal: { kind: 'long_window', retryAfterMs: 13_873_000 },
      scope,
      isFinal: true,
    });
  });
});

describe('a wait of 0', () => {
  test.each(['0', 'Tue, 06 Oct 2026 11:00:00 GMT'])('of Retry-After: %s yields', (value) => {
    const headers = new Headers({ 'retry-after': value });
    const seen = withMessage('Please try again in 45s.', { headers });
    expect(classifyRefusal(seen)?.signal.retryAfterMs).toBe(45_000);
    expect(classifyRefusal(answer({ headers }))?.signal.retryAfterMs).toBe(0);
  });
});

describe('a wait of 0 beside another one of the same kind', () => {
  test('in the headers', () => {
    const headers = new Headers({ 'retry-after-ms': '0', 'retry-after': '30' });
    expect(classifyRefusal(answer({ headers }))?.signal.retryAfterMs).toBe(30_000);
  });

  test.each<[string, object, number]>([
    ['a span', { retry_after: 0, resets_in_seconds: 13_873 }, 13_873_000],
    ['an instant', { resets_in_seconds: 0, resets_at: NOW / 1_000 + 90 }, 90_000],
    ['the text', { retry_after: 0, message: 'Please try again in 45s.' }, 45_000],
    ['a later sentence', { message: 'Try again after 0 seconds. Wait 45 seconds.' }, 45_000],
    ['nothing', { retry_after: 0 }, 0],
  ])('in the body: %s', (_, error, expected) => {
    const seen = answer({ headers: new Headers(), body: JSON.stringify({ error }) });
    expect(classifyRefusal(seen)?.signal.retryAfterMs).toBe(expected);
  });
});

describe('counters at 0 of an unknown upstream', () => {
  const headers = new Headers({
    'x-ratelimit-remaining-requests': '0',
    'x-ratelimit-reset-requests': '6m0s',
  });
  test.each([
    ['Too many', 360_000],
    ['requests per minute', 360_000],
    ['tokens per minute', null],
    ['concurrency', null],
  ])('%s', (message, expected) => {
    const seen = withMessage(message, { upstreamId: 'mine', headers, headerProfile: null });
    expect(classifyRefusal(seen)?.signal.retryAfterMs).toBe(expected);
  });
});

describe('the message that is shown', () => {
  const wordsOf = (message: string, status = 429) =>
    classifyRefusal(withMessage(message, { status }))?.signal.words;

  test('is the first one, on one line', () => {
    expect(wordsOf('The usage limit\n has been reached')).toBe('The usage limit has been reached');
    expect(classifyRefusal(answer({ body: '{}' }))?.signal).not.toHaveProperty('words');
  });

  test('has at most 300 characters', () => {
    expect(wordsOf(`Rate limit. ${'word '.repeat(100)}`)).toHaveLength(300);
  });

  test.each([
    ['Rate limit for key sk-proj-Ab12Cd34Ef56 reached', 'Rate limit for key … reached'],
    [
      'Limit of org-AbCdEf1234 on claude-sonnet-4-5-20250929',
      'Limit of … on claude-sonnet-4-5-20250929',
    ],
    ['Bearer abc.def is limited', '… is limited'],
    ['see https://example.com/limits?key=4711abc', 'see https://example.com/limits?key=…'],
    ['Contact ops+1@example.com', 'Contact …'],
    ['Token AbCd1234-EfGh5678_IjKl90 is limited', 'Token … is limited'],
  ])('hold no secret: %s', (message, expected) => {
    expect(wordsOf(message)).toBe(expected);
  });

  test('is never that of a 400 or 403, which repeats what callers write', () => {
    const body = JSON.stringify({ error: { message: 'x', code: 'insufficient_quota' } });
    expect(classifyRefusal(answer({ status: 403, body }))?.signal).not.toHaveProperty('words');
  });
});

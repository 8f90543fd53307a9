import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { classifyRefusal } from '../../../../src/upstream/refusal/classify-refusal.ts';
import {
  FEED_FORWARD_DEFAULTS,
  waitFromHints,
} from '../../../../src/upstream/refusal/feed-forward.ts';
import { PROVIDERS, providerNamed } from '../../../../src/providers/catalog.ts';
import {
  ALL_COMMON_HEADERS,
  COMMON_HEADERS,
  readLimitHints,
  SentLimitHeaders,
  type HeaderProfile,
} from '../../../../src/upstream/refusal/limit-headers.ts';
import { answer } from '../../providers/seen-refusal.ts';

const NOW = Date.parse('2026-10-06T12:00:00Z');

const BELIEVED: HeaderProfile = { ...COMMON_HEADERS, isReliable: true, source: '', date: '' };

test.each(['', '-1', 'x', '1e3', '9'.repeat(16)])('"%s" means nothing', (text) => {
  const headers = new Headers({ 'x-ratelimit-remaining-requests': text });
  expect(readLimitHints(headers, BELIEVED, NOW)).toEqual([]);
});

describe('an answer without limits', () => {
  test('costs at most two look-ups', () => {
    const spies = [vi.spyOn(Headers.prototype, 'get'), vi.spyOn(Headers.prototype, 'has')];
    onTestFinished(() => spies.forEach((spy) => spy.mockRestore()));
    const headers = new Headers({ 'content-type': 'application/json' });
    const profiles = PROVIDERS.flatMap(({ limitHeaders }) => limitHeaders ?? []);
    expect(profiles.length).toBeGreaterThan(0);
    for (const profile of profiles) {
      expect(readLimitHints(headers, { ...profile, isReliable: true }, NOW)).toEqual([]);
      const count = spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0);
      expect(count).toBeGreaterThan(0);
      expect(count).toBeLessThanOrEqual(2);
      spies.forEach((spy) => spy.mockClear());
    }
  });
});

describe('the profiles', () => {
  const headers = new Headers({ 'x-ratelimit-remaining': '0' });

  test('that are not reliable are not read, unless an operator says so', () => {
    const profile = providerNamed('together')?.limitHeaders ?? BELIEVED;
    expect(readLimitHints(headers, profile, NOW)).toEqual([]);
    expect(readLimitHints(headers, { ...profile, isReliable: true }, NOW)).toHaveLength(1);
  });

  test('that are unknown are not read', () => {
    expect(readLimitHints(headers, null, NOW)).toEqual([]);
  });
});

describe('of an unknown upstream', () => {
  const profile: HeaderProfile = { ...BELIEVED, ...ALL_COMMON_HEADERS };
  const hint = { dimension: 'requests', limit: 100, remaining: 50, resetMs: 30_000 };
  const inHalfAMinute = String((NOW + 30_000) / 1_000);

  test.each<[string, Record<string, string>, number | null]>([
    ['x-ratelimit-*-requests', named('x-ratelimit-', '-requests', '30s'), 60_000],
    ['x-ratelimit-*', named('x-ratelimit-', '', inHalfAMinute), null],
    [
      'anthropic-ratelimit-requests-*',
      named('anthropic-ratelimit-requests-', '', '2026-10-06T12:00:30Z'),
      60_000,
    ],
    ['RateLimit-*', { ...named('ratelimit-', '', '30'), 'ratelimit-limit': '100, 100;w=60' }, null],
    ['RateLimit in one header', { ratelimit: 'limit=100, remaining=50, reset=30' }, null],
    [
      'RateLimit with the instant of its reset',
      { ratelimit: `limit=100, remaining=50, reset=${inHalfAMinute}` },
      null,
    ],
    [
      'RateLimit with a policy',
      {
        ratelimit: '"default";r=50;t=30',
        'ratelimit-policy': '"burst";q=9;w=1, "default";q=100;w=60',
      },
      60_000,
    ],
    [
      'RateLimit with words of its own in a name',
      {
        ratelimit: '"a;b, r=7;c";r=50;t=30',
        'ratelimit-policy': '"a;x";q=9;w=1, "a;b, r=7;c";q=100;w=60',
      },
      60_000,
    ],
  ])('%s is read', (_, headers, windowMs) => {
    expect(readLimitHints(new Headers(headers), profile, NOW)).toEqual([{ ...hint, windowMs }]);
  });

  test('policies of tokens are limits of tokens', () => {
    const headers = new Headers({
      ratelimit: '"requests";r=50;t=30, "tokens";r=900;t=10',
      'ratelimit-policy': '"requests";q=100;w=60, "tokens";q=1000;w=60',
    });
    expect(readLimitHints(headers, profile, NOW)).toEqual([
      { ...hint, windowMs: 60_000 },
      { dimension: 'tokens', windowMs: 60_000, limit: 1_000, remaining: 900, resetMs: 10_000 },
    ]);
  });

  test.each(['x', '"a";r=-1;t=5', `"${'a'.repeat(600)}";r=1;t=5`, ',,,'])(
    'RateLimit: %s means nothing',
    (ratelimit) => {
      expect(readLimitHints(new Headers({ ratelimit }), profile, NOW)).toEqual([]);
    },
  );
});

describe('the headers that an unknown upstream has sent', () => {
  const common = new Headers(named('x-ratelimit-', '-requests', '30s'));

  function answersUntil(sent: SentLimitHeaders, headers: Headers): number {
    let answers = 1;
    while (sent.read(headers, NOW).length === 0 && answers < 100) answers += 1;
    return answers;
  }

  test.each([0, 8, 9, 40])('are found after %i answers without any', (without) => {
    const sent = new SentLimitHeaders(ALL_COMMON_HEADERS);
    for (let i = 0; i < without; i += 1) sent.read(new Headers(), NOW);
    expect(answersUntil(sent, common)).toBeLessThanOrEqual(16);
  });

  test.each([
    ['x-ratelimit-*-requests', common],
    ['RateLimit', new Headers({ ratelimit: '"default";r=50;t=30' })],
  ])('%s is read in every answer, with few look-ups', (_, headers) => {
    const sent = new SentLimitHeaders(ALL_COMMON_HEADERS);
    const spies = [vi.spyOn(Headers.prototype, 'get'), vi.spyOn(Headers.prototype, 'has')];
    onTestFinished(() => spies.forEach((spy) => spy.mockRestore()));
    for (let i = 0; i < 100; i += 1) expect(sent.read(headers, NOW)).toHaveLength(1);
    expect(spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0)).toBeLessThan(700);
  });

  test('are not read in every answer if they name no reset', () => {
    const sent = new SentLimitHeaders(ALL_COMMON_HEADERS);
    const headers = new Headers({ 'x-ratelimit-remaining-requests': '50' });
    const read = Array.from({ length: 100 }, () => sent.read(headers, NOW).length);
    expect(read.reduce((sum, hints) => sum + hints, 0)).toBeLessThan(20);
  });

  test('are joined by others that come later', () => {
    const sent = new SentLimitHeaders(ALL_COMMON_HEADERS);
    sent.read(common, NOW);
    const others = named('anthropic-ratelimit-requests-', '', '2026-10-06T12:00:30Z');
    const both = new Headers([...common, ...Object.entries(others)]);
    for (let i = 0; i < 16; i += 1) sent.read(both, NOW);
    expect(sent.read(both, NOW)).toHaveLength(2);
  });
});

/** Names the three headers of a limit of which half is left for half a minute. */
function named(
  prefix: string,
  suffix: string,
  reset: string | null,
  limit = '100',
  remaining = '50',
): Record<string, string> {
  return {
    [`${prefix}limit${suffix}`]: limit,
    [`${prefix}remaining${suffix}`]: remaining,
    ...(reset !== null && { [`${prefix}reset${suffix}`]: reset }),
  };
}

describe('a limit that is used up is waited for', () => {
  /** Names the three headers of a limit of 60, of which nothing is left. */
  const usedUp = (prefix: string, suffix: string, reset: string | null) =>
    named(prefix, suffix, reset, '60', '0');
  const apart = (prefix: string, reset: string) => ({
    [`${prefix}-limit`]: '60',
    [`${prefix}-remaining`]: '0',
    [`${prefix}-reset`]: reset,
  });
  const at = (ms: number) => new Date(NOW + ms).toISOString();
  const draft = { 'ratelimit-policy': '"default";q=60;w=20' };

  // The wait after a served call, in the way in which the provider's limits refill, and after a refusal without a time.
  test.each<[string, string | null, Record<string, string>, number | null, number | null]>([
    ['a Go duration in ms', 'openai', usedUp('x-ratelimit-', '-requests', '900ms'), 15, 900],
    ['a Go duration', 'openai', usedUp('x-ratelimit-', '-requests', '1m12.5s'), 1_209, 72_500],
    ['tokens of the same', 'openai', usedUp('x-ratelimit-', '-tokens', '20s'), 1_000, 20_000],
    [
      'an instant',
      'anthropic',
      apart('anthropic-ratelimit-requests', '2026-10-06T12:00:20Z'),
      334,
      20_000,
    ],
    [
      'an instant with fractions',
      'anthropic',
      apart('anthropic-ratelimit-tokens', at(20_250)),
      1_013,
      20_250,
    ],
    [
      'an instant with an offset',
      'anthropic',
      apart('anthropic-ratelimit-requests', '2026-10-06T14:00:20+02:00'),
      334,
      20_000,
    ],
    [
      'seconds with fractions, of a minute',
      'cerebras',
      usedUp('x-ratelimit-', '-requests-minute', '17.382867'),
      17_383,
      17_383,
    ],
    [
      'the same of tokens',
      'cerebras',
      usedUp('x-ratelimit-', '-tokens-minute', '17.382867'),
      17_383,
      17_383,
    ],
    [
      'the same of a day, which outlasts callers',
      'cerebras',
      usedUp('x-ratelimit-', '-requests-day', '33011.382867'),
      null,
      33_011_383,
    ],
    ['no reset', 'azure', usedUp('x-ratelimit-', '-requests', null), null, null],
    ['seconds', 'azure', usedUp('x-ratelimit-', '-tokens', '7'), 8_000, 7_000],
    [
      'no reset of a known window',
      'mistral',
      usedUp('x-ratelimit-', '-req-minute', null),
      1_000,
      null,
    ],
    [
      'tokens of a minute beside requests of a day',
      'groq',
      {
        ...usedUp('x-ratelimit-', '-tokens', '7.66s'),
        ...named('x-ratelimit-', '-requests', '2m59.56s', '14400', '14370'),
      },
      383,
      7_660,
    ],
    [
      'an epoch in seconds',
      null,
      usedUp('x-ratelimit-', '', String(NOW / 1_000 + 20)),
      334,
      20_000,
    ],
    [
      'an epoch in milliseconds',
      'openrouter',
      usedUp('x-ratelimit-', '', String(NOW + 20_250)),
      20_250,
      20_250,
    ],
    [
      'seconds until the limit is whole',
      'github-models',
      { 'x-ratelimit-timeremaining': '17' },
      null,
      17_000,
    ],
    ['the draft with a policy', null, { ...draft, ratelimit: '"default";r=0;t=20' }, 334, 20_000],
    [
      'the draft in one header',
      null,
      { ratelimit: 'limit=60, remaining=0, reset=20' },
      334,
      20_000,
    ],
    [
      'the draft in three headers',
      null,
      { ...usedUp('ratelimit-', '', '20'), 'ratelimit-limit': '60, 60;w=20' },
      334,
      20_000,
    ],
  ])('%s: %s', (_, id, sent, servedMs, refusedMs) => {
    const headers = new Headers(sent);
    const unknown: HeaderProfile = { ...BELIEVED, ...ALL_COMMON_HEADERS };
    const profile = id === null ? unknown : (providerNamed(id)?.limitHeaders ?? null);
    const hints = readLimitHints(
      headers,
      profile === null ? null : { ...profile, isReliable: true },
      NOW,
    );
    const options = { ...FEED_FORWARD_DEFAULTS, now: NOW };
    expect(waitFromHints(hints, () => profile?.refill ?? 'window', options)).toBe(servedMs);
    const seen = { headers, ...(id !== null && { upstreamId: id }) };
    const refused = id === null ? { ...seen, upstreamId: 'unknown' } : seen;
    expect(classifyRefusal(answer(refused))?.signal.retryAfterMs).toBe(refusedMs);
  });
});

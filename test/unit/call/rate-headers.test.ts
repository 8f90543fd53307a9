import { describe, expect, it, test } from 'vitest';
import { rateHeaders } from '../../../src/call/answer/response-headers.ts';
import type { RateRoom } from '../../../src/core/parts/rates.ts';
import { instant } from '../../../src/core/words/ids.ts';
import { parseResetMs } from '../../../src/upstream/refusal/reset-time.ts';

const NO_ACTOR = new Headers();

function room(name: RateRoom['name'], limit: number, left: number, resetMs = 0): RateRoom {
  return { name, limit, left, resetMs };
}

describe('headers of rates', () => {
  it('tell of requests and of tokens what the limit that is nearest its end leaves', () => {
    const rooms = [
      room('rpm', 600, 300, 30_000),
      room('rpd', 1_000, 40, 86_400_000),
      room('tpm', 1_000, 999, 1),
      room('otpm', 100, 0, 61_000),
    ];
    expect(rateHeaders(rooms, NO_ACTOR)).toEqual({
      'x-ratelimit-limit-requests': '1000',
      'x-ratelimit-remaining-requests': '40',
      'x-ratelimit-reset-requests': '24h0m0s',
      'x-ratelimit-limit-tokens': '100',
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '1m1s',
    });
  });

  it('tell of what is limited alone', () => {
    expect(Object.keys(rateHeaders([room('tpd', 5, 5)], NO_ACTOR))).toEqual([
      'x-ratelimit-limit-tokens',
      'x-ratelimit-remaining-tokens',
      'x-ratelimit-reset-tokens',
    ]);
  });

  it('are none beside any of the upstream', () => {
    const theirs = new Headers({ 'X-RateLimit-Remaining-Tokens-Minute': '7' });
    expect(rateHeaders([room('rpm', 1, 1)], theirs)).toEqual({});
  });
});

test.each([
  [0, '0s'],
  [1, '1s'],
  [59_001, '1m0s'],
  [360_000, '6m0s'],
  [3_600_000, '1h0m0s'],
])('a reset in %d ms is %s, which we read as OpenAI writes it', (resetMs, written) => {
  const said = rateHeaders([room('rpm', 1, 0, resetMs)], NO_ACTOR);
  expect(said['x-ratelimit-reset-requests']).toBe(written);
  expect(parseResetMs(written, instant(0))).toBe(Math.ceil(resetMs / 1_000) * 1_000);
});

import type { AnswerHeaders } from '../contract/answer-headers.ts';
import type { RateRoom } from '../core/parts/rates.ts';

/** The limits of requests. The others count tokens. */
const OF_REQUESTS: ReadonlySet<RateRoom['name']> = new Set(['rpm', 'rpd']);

const FAMILY = 'x-ratelimit-';

/**
 * Writes the rate limits in the headers of OpenAI, which its clients read: one limit of requests and one of tokens,
 * each the one with the smallest share left. Writes nothing if the upstream has sent such headers, because a mix of
 * both would be wrong.
 */
export function rateHeaders(rooms: readonly RateRoom[], theirs: Headers): AnswerHeaders {
  if ([...theirs.keys()].some((name) => name.startsWith(FAMILY))) return {};
  const requests = tightest(rooms.filter(({ name }) => OF_REQUESTS.has(name)));
  const tokens = tightest(rooms.filter(({ name }) => !OF_REQUESTS.has(name)));
  return {
    ...(requests !== undefined && {
      'x-ratelimit-limit-requests': String(requests.limit),
      'x-ratelimit-remaining-requests': String(requests.left),
      'x-ratelimit-reset-requests': durationOf(requests.resetMs),
    }),
    ...(tokens !== undefined && {
      'x-ratelimit-limit-tokens': String(tokens.limit),
      'x-ratelimit-remaining-tokens': String(tokens.left),
      'x-ratelimit-reset-tokens': durationOf(tokens.resetMs),
    }),
  };
}

function tightest(rooms: readonly RateRoom[]): RateRoom | undefined {
  return rooms.toSorted((a, b) => shareOf(a) - shareOf(b))[0];
}

function shareOf({ left, limit }: RateRoom): number {
  return limit === 0 ? 0 : left / limit;
}

/** Writes a duration as Go does, in whole seconds, rounded up: `0s`, `59s`, `6m0s`, `24h0m0s`. */
function durationOf(ms: number): string {
  const all = Math.ceil(ms / 1_000);
  const [hours, minutes, seconds] = [Math.floor(all / 3_600), Math.floor(all / 60) % 60, all % 60];
  if (hours > 0) return `${hours}h${minutes}m${seconds}s`;
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`;
}

import { BoundedMap } from '../core/parts/bounded-map.ts';
import type { ErrorReply } from '../contract/reasons.ts';

/** The last retry of a caller that was rejected for an unknown time. */
interface WaiterReturn {
  readonly times: number;
  readonly at: number;
  /** A retry after this time followed the reported delay. */
  readonly untilAt: number;
}

/** Maximum callers that are remembered. The one rejected longest ago is forgotten first. */
export const RETURNS_MAX = 1_000;

/** A caller that was not rejected for this long starts with the first delay again. */
const FORGOTTEN_MS = 300_000;

/** The first delay that a group reports. Up to half of it is added at random. */
const STOPPED_MS = 15_000;

/** How long queued bodies mostly leave no room. Some of their calls get slots meanwhile. */
const MANY_KEYS_MS = 2_000;

/** How long an object is usually unreachable. In most cases it is being moved or deployed. */
const UNREACHED_MS = 1_000;

/** Maximum delay. With the random half it stays within a minute. */
const GROWN_MAX_MS = 40_000;

/**
 * Spaces the retries of callers that are rejected for an unknown time. The delay doubles with each retry, up to a
 * minute. Concurrent rejections of one caller count as one. The state belongs to the isolate: a group's object
 * hibernates between the retries of a caller, and storing them would cost more than they do.
 */
export class WaiterReturns {
  readonly #byCaller = new BoundedMap<string, WaiterReturn>(RETURNS_MAX);

  get size(): number {
    return this.#byCaller.size;
  }

  /** The rejection that this caller receives at `now`. */
  space(refusal: ErrorReply, callerId: string, now: number): ErrorReply {
    const firstMs = firstMsOf(refusal);
    if (firstMs === null) return refusal;
    const { times } = this.#note(callerId, firstMs, now);
    const retryAfterMs = (refusal.retryAfterMs ?? firstMs) * growth(firstMs, times);
    return { ...refusal, retryAfterMs };
  }

  #note(callerId: string, firstMs: number, now: number): WaiterReturn {
    const known = this.#byCaller.get(callerId);
    const noted = known !== undefined && now < known.untilAt ? known : after(known, firstMs, now);
    this.#byCaller.set(callerId, noted);
    return noted;
  }
}

function after(known: WaiterReturn | undefined, firstMs: number, now: number): WaiterReturn {
  const isFirst = known === undefined || now - known.at > FORGOTTEN_MS;
  const times = isFirst ? 0 : known.times + 1;
  return { times, at: now, untilAt: now + firstMs * growth(firstMs, times) };
}

function growth(firstMs: number, times: number): number {
  return Math.min(2 ** times, GROWN_MAX_MS / firstMs);
}

/** null if the end of the wait is known, or there is none. */
function firstMsOf({ reason, isUnforeseen, retryAfterMs }: ErrorReply): number | null {
  if (reason === 'limiter_unavailable') return UNREACHED_MS;
  if (reason === 'too_many_bytes_waiting') return MANY_KEYS_MS;
  return isUnforeseen === true && retryAfterMs !== undefined ? STOPPED_MS : null;
}

import { BoundedMap } from '../core/parts/bounded-map.ts';
import type { ErrorReply } from '../contract/reasons.ts';

/** The last time that a caller came back to what nobody knows the end of. */
interface WaiterReturn {
  readonly times: number;
  readonly at: number;
  /** The time after which a caller comes that heeds what it was told. */
  readonly untilAt: number;
}

/** Maximum callers that are remembered; the one rejected longest ago is forgotten first. */
export const RETURNS_MAX = 1_000;

/** How long a caller must not have been rejected to begin anew. */
const FORGOTTEN_MS = 300_000;

/** How long a group says at the first time, and up to half of it more by chance. */
const STOPPED_MS = 15_000;

/** How long bodies that wait mostly leave no room: some of their calls get their slots meanwhile. */
const MANY_KEYS_MS = 2_000;

/**
 * How long an object that cannot be reached usually is gone: it is being moved or deployed, mostly.
 */
const UNREACHED_MS = 1_000;

/** Maximum wait that is told; with the half by chance it stays within a minute. */
const GROWN_MAX_MS = 40_000;

/**
 * Spaces the tries of callers that are refused without anybody knowing for how long: each is told twice as
 * long with each time that it comes back, up to a minute. Its other calls meanwhile are of the same time.
 * An isolate's own, since a group's object sleeps between the tries of a caller, and to write them down
 * would cost more than they do.
 */
export class WaiterReturns {
  readonly #byCaller = new BoundedMap<string, WaiterReturn>(RETURNS_MAX);

  get size(): number {
    return this.#byCaller.size;
  }

  /** The refusal as this caller gets it at `now`. */
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
  const isAnew = known === undefined || now - known.at > FORGOTTEN_MS;
  const times = isAnew ? 0 : known.times + 1;
  return { times, at: now, untilAt: now + firstMs * growth(firstMs, times) };
}

function growth(firstMs: number, times: number): number {
  return Math.min(2 ** times, GROWN_MAX_MS / firstMs);
}

/** Null: its end is known, or it has none. */
function firstMsOf({ reason, isUnforeseen, retryAfterMs }: ErrorReply): number | null {
  if (reason === 'limiter_unavailable') return UNREACHED_MS;
  if (reason === 'too_many_bytes_waiting') return MANY_KEYS_MS;
  return isUnforeseen === true && retryAfterMs !== undefined ? STOPPED_MS : null;
}

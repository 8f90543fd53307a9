import type { Refusal } from '../contract/reasons.ts';

/** How often a caller was refused for something of which nobody knows the end, and when it was last. */
interface Comeback {
  readonly times: number;
  readonly at: number;
}

/** So many callers are remembered; who was refused longest ago is forgotten first. */
export const COMEBACKS_MAX = 1_000;

/** Who was not refused for so long begins anew. */
const FORGOTTEN_MS = 300_000;

/** Of what the group says, which is 15 s and a part by chance, at the most 22.5 s: so it stays within a minute. */
const GROWTH_MAX = 60 / 22.5;

/**
 * Spaces the tries of callers that are refused without anybody knowing for how long: each is told twice as
 * long with each time that it comes back, up to a minute. An isolate's own, since a group's object sleeps
 * between the tries of a caller, and to write them down would cost more than they do.
 */
export class Comebacks {
  readonly #byCaller = new Map<string, Comeback>();

  get size(): number {
    return this.#byCaller.size;
  }

  /** The refusal as this caller gets it at `now`. */
  space(refusal: Refusal, callerId: string, now: number): Refusal {
    const { isUnforeseen, retryAfterMs } = refusal;
    if (isUnforeseen !== true || retryAfterMs === undefined) return refusal;
    const known = this.#byCaller.get(callerId);
    const times = known === undefined || now - known.at > FORGOTTEN_MS ? 0 : known.times;
    this.#byCaller.delete(callerId);
    this.#byCaller.set(callerId, { times: times + 1, at: now });
    if (this.#byCaller.size > COMEBACKS_MAX) {
      const [oldest = ''] = this.#byCaller.keys();
      this.#byCaller.delete(oldest);
    }
    return { ...refusal, retryAfterMs: retryAfterMs * Math.min(2 ** times, GROWTH_MAX) };
  }
}

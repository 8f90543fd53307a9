import { after, instant, type InstantMs } from '../words/ids.ts';
import type { Ticket } from '../words/ticket.ts';
import { BoundedMap } from './bounded-map.ts';

/**
 * Full pools, each with the time until which calls that also need slots there are passed over here. Without it, a slot
 * that one of these calls returns would go to the next of them. That call would be declined there and return the slot
 * too. All of them would move to the other queue, one round trip each, while the slot is idle.
 */
export type FullPool = BoundedMap<string, InstantMs>;

const POOLS_MAX = 100;

/**
 * Maximum time for which calls are passed over, in milliseconds. Then one of them checks again, because estimates may
 * be wrong.
 */
const PASS_OVER_MS_MAX = 5_000;

export function nothingPassedOver(): FullPool {
  return new BoundedMap(POOLS_MAX);
}

/** Passes over calls that need slots of a pool which is full for about `forMs`. */
export function passOver(passedOver: FullPool, pool: string, forMs: number, now: InstantMs): void {
  passedOver.set(pool, after(now, Math.min(PASS_OVER_MS_MAX, Math.max(0, forMs))));
}

export function isPassedOver(passedOver: FullPool, { needs }: Ticket, now: InstantMs): boolean {
  if (passedOver.size === 0 || needs === undefined) return false;
  return needs.some((pool) => (passedOver.get(pool) ?? -Infinity) > now);
}

/** Removes expired entries. Returns when the next one expires, Infinity if there is none. */
export function endPassedOver(passedOver: FullPool, now: InstantMs): InstantMs {
  let next = Infinity;
  for (const [pool, until] of passedOver.entries()) {
    if (until <= now) passedOver.delete(pool);
    else next = Math.min(next, until);
  }
  return instant(next);
}

import { after, instant, type InstantMs } from '../words/ids.ts';
import type { Ticket } from '../words/ticket.ts';
import { BoundedMap } from './bounded-map.ts';

/**
 * Other pools that are full, each with the instant until which calls that need slots there too are passed over here. Without it,
 * a slot that one of them gives back would go to the next of them, which would be told there that it has to wait, and give it
 * back in turn: all of them would move to the other queue, one round trip each, while the slot stands idle.
 */
export type FullPool = BoundedMap<string, InstantMs>;

/** Maximum of pools that are remembered. */
const POOLS_MAX = 100;

/** Maximum time for which calls are passed over, in milliseconds: then one of them asks there again, as estimates may be wrong. */
const PASS_OVER_MS_MAX = 5_000;

export function nothingPassedOver(): FullPool {
  return new BoundedMap(POOLS_MAX);
}

/** Passes over the calls that need slots of that pool, which is full for about so long. */
export function passOver(passedOver: FullPool, pool: string, forMs: number, now: InstantMs): void {
  passedOver.set(pool, after(now, Math.min(PASS_OVER_MS_MAX, Math.max(0, forMs))));
}

export function isPassedOver(passedOver: FullPool, { needs }: Ticket, now: InstantMs): boolean {
  if (passedOver.size === 0 || needs === undefined) return false;
  return needs.some((pool) => (passedOver.get(pool) ?? -Infinity) > now);
}

/** Forgets those whose time is over. Returns when the next one's is; Infinity: there is none. */
export function endPassedOver(passedOver: FullPool, now: InstantMs): InstantMs {
  let next = Infinity;
  for (const [pool, until] of passedOver.entries()) {
    if (until <= now) passedOver.delete(pool);
    else next = Math.min(next, until);
  }
  return instant(next);
}

import { instant, type InstantMs } from '../words/ids.ts';

/**
 * When the last calls ended, one entry per slot. An upstream that lags still counts some of them. Kept in memory only,
 * because after a reset cooling slots are held for longer than any lag.
 */
export interface RecentEnds {
  /** A ring with one place per slot. */
  readonly endedAt: InstantMs[];
  next: number;
}

/** Maximum number of remembered slots. A lag of more slots is not measured. */
const PLACES = 1_024;

const NEVER_ENDED = instant(-Infinity);

export function noEnds(): RecentEnds {
  return { endedAt: [], next: 0 };
}

export function noteEnd(ends: RecentEnds, slots: number, now: InstantMs): void {
  for (let slot = 0; slot < slots; slot += 1) {
    ends.endedAt[ends.next] = now;
    ends.next = (ends.next + 1) % PLACES;
  }
}

export function endedSince(ends: RecentEnds, since: InstantMs): number {
  let slots = 0;
  while (endOf(ends, slots + 1) > since) slots += 1;
  return slots;
}

/** Returns when the slot was freed that is `count`-th from the end. -Infinity if unknown, or if none was. */
export function endOf({ endedAt, next }: RecentEnds, count: number): InstantMs {
  if (count < 1 || count > endedAt.length) return NEVER_ENDED;
  return endedAt[(next - count + PLACES) % PLACES] ?? NEVER_ENDED;
}

import { instant, type InstantMs } from '../words/ids.ts';

/**
 * When the last calls had ended, in slots. An upstream that lags still counts some of them. Kept in memory only:
 * after a reset slots that cooled down are held for longer than any lag.
 */
export interface RecentEnds {
  /** A ring: one place a slot. */
  readonly endedAt: InstantMs[];
  next: number;
}

/** Maximum slots that are remembered. Of more no lag is told, however short it may be. */
const PLACES = 1_024;

const NEVER_ENDED = instant(-Infinity);

/** Makes the ends of a group that has made no call. */
export function noEnds(): RecentEnds {
  return { endedAt: [], next: 0 };
}

/** Notes that a call of so many slots has ended. */
export function noteEnd(ends: RecentEnds, slots: number, now: InstantMs): void {
  for (let slot = 0; slot < slots; slot += 1) {
    ends.endedAt[ends.next] = now;
    ends.next = (ends.next + 1) % PLACES;
  }
}

/** Counts the slots that came back after an instant. */
export function endedSince(ends: RecentEnds, since: InstantMs): number {
  let slots = 0;
  while (endOf(ends, slots + 1) > since) slots += 1;
  return slots;
}

/** Finds when the last slot but `count - 1` came back; -Infinity: that is not known, or never. */
export function endOf({ endedAt, next }: RecentEnds, count: number): InstantMs {
  if (count < 1 || count > endedAt.length) return NEVER_ENDED;
  return endedAt[(next - count + PLACES) % PLACES] ?? NEVER_ENDED;
}

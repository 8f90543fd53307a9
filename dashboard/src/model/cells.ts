import type { LeaseView } from './status.ts';

/** One slot of the large picture: which lease is in it, or null. A lease may take several. */
export type Cells = readonly (LeaseView | null)[];

/**
 * Puts leases into slots so that each stays where it was: a call that ends leaves a gap, and the next
 * one fills it. There are as many cells as slots, or more where more are taken.
 */
export function placeLeases(before: Cells, leases: readonly LeaseView[], slots: number): Cells {
  const wanted = new Map(leases.map((lease) => [lease.id, lease.slots]));
  const now = new Map(leases.map((lease) => [lease.id, lease]));
  const cells = before.map((old) => {
    const left = old === null ? 0 : (wanted.get(old.id) ?? 0);
    if (old === null || left === 0) return null;
    wanted.set(old.id, left - 1);
    return now.get(old.id) ?? null;
  });
  for (const lease of leases) {
    for (let left = wanted.get(lease.id) ?? 0; left > 0; left -= 1) {
      const gap = cells.indexOf(null);
      if (gap === -1) cells.push(lease);
      else cells[gap] = lease;
    }
  }
  while (cells.length < slots) cells.push(null);
  return cells.length > slots ? closeGaps(cells, slots) : cells;
}

/** After a limit was lowered: takes empty cells from the end, then the other gaps. */
function closeGaps(cells: Cells, slots: number): Cells {
  const kept = [...cells];
  for (let i = kept.length - 1; i >= 0 && kept.length > slots; i -= 1) {
    if (kept[i] === null) kept.splice(i, 1);
  }
  return kept;
}

/** How many times its usual hold a lease must have lasted to stand out. */
const OLD_AT = 3;

/** Minimum age of a hold that stands out: three times a hold of a blink is still a blink. */
const OLD_MS_MIN = 10_000;

/** How far a lease is through its usual hold, 0 to 1 and beyond; null: nobody knows what is usual. */
export function progressOf(ageMs: number, usualHoldMs: number | null): number | null {
  return usualHoldMs === null || usualHoldMs <= 0 ? null : ageMs / usualHoldMs;
}

/** Whether a lease has been held so much longer than is usual that somebody had better look. */
export function isOld(ageMs: number, usualHoldMs: number | null): boolean {
  return ageMs >= OLD_MS_MIN && (progressOf(ageMs, usualHoldMs) ?? 0) >= OLD_AT;
}

/** The middle one, or null for want of any. */
export function median(values: readonly number[]): number | null {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? null;
}

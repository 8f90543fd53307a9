import type { LeaseView } from './status.ts';

/** Slots of the large picture, each with its lease or null. A lease may fill several. */
export type Cells = readonly (LeaseView | null)[];

/**
 * Places leases in slots so that each keeps its place: a call that ends leaves a gap, and the next one fills it. There
 * are as many cells as slots, or more if more slots are in use.
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

/** Removes surplus cells after a limit was lowered: empty cells from the end first, then gaps. */
function closeGaps(cells: Cells, slots: number): Cells {
  const kept = [...cells];
  for (let i = kept.length - 1; i >= 0 && kept.length > slots; i -= 1) {
    if (kept[i] === null) kept.splice(i, 1);
  }
  return kept;
}

/** Multiple of the usual hold from which a lease is marked as old. */
const OLD_AT = 3;

/** Minimum age of a marked lease. Three times a very short hold is still short. */
const OLD_MS_MIN = 10_000;

/** Age of a lease as a part of the usual hold, from 0 to beyond 1. null if the usual hold is unknown. */
export function progressOf(ageMs: number, usualHoldMs: number | null): number | null {
  return usualHoldMs === null || usualHoldMs <= 0 ? null : ageMs / usualHoldMs;
}

/** Whether a lease is held so much longer than usual that an operator should look at it. */
export function isOld(ageMs: number, usualHoldMs: number | null): boolean {
  return ageMs >= OLD_MS_MIN && (progressOf(ageMs, usualHoldMs) ?? 0) >= OLD_AT;
}

/** Median, or null for an empty list. */
export function median(values: readonly number[]): number | null {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? null;
}

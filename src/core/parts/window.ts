import { after, instant, later, type InstantMs } from '../words/ids.ts';

/**
 * Amounts taken in the recent past, summed up in bins. An exact log would have one entry per call. An entry is the
 * number of its bin since the epoch and the amount in it. Oldest first.
 */
export interface Window {
  bins: [bin: number, amount: number][];
}

export interface WindowParams {
  /** Maximum amount in any period of `lengthMs`. */
  readonly limit: number;
  readonly lengthMs: number;
  readonly binMs: number;
  /** How long a bin counts beyond its last instant plus the length, because messages take different times. */
  readonly marginMs: number;
}

/** Maximum rounding error of sums, as a share of the limit. */
const TOLERANCE = 1e-9;

export function emptyWindow(): Window {
  return { bins: [] };
}

export function usedAt(window: Window, params: WindowParams, now: InstantMs): number {
  let used = 0;
  for (const [bin, amount] of window.bins) if (leavesAt(bin, params) > now) used += amount;
  return used;
}

/** Returns when `amount` fits if nothing else is taken. `now` if it already does, Infinity if it never will. */
export function windowFitsAt(
  window: Window,
  params: WindowParams,
  amount: number,
  now: InstantMs,
): InstantMs {
  if (amount <= 0) return now;
  const room = params.limit * (1 + TOLERANCE) - amount;
  if (params.limit <= 0 || room < 0) return instant(Infinity);
  let used = usedAt(window, params, now);
  let fitsAt = now;
  for (const [bin, taken] of window.bins) {
    if (used <= room) break;
    const leaves = leavesAt(bin, params);
    if (leaves <= now) continue;
    used -= taken;
    fitsAt = leaves;
  }
  return fitsAt;
}

/** Returns when nothing counts any more if nothing is taken. `now` if nothing counts already. */
export function wholeAt(window: Window, params: WindowParams, now: InstantMs): InstantMs {
  const last = window.bins.findLast(([, amount]) => amount > 0);
  return last === undefined ? now : later(now, leavesAt(last[0], params));
}

/**
 * Returns how much may still be taken before `at` so that `amount` fits then. A negative result means that it will not
 * fit anyway.
 */
export function windowSpare(
  window: Window,
  params: WindowParams,
  amount: number,
  at: InstantMs,
): number {
  return params.limit * (1 + TOLERANCE) - amount - usedAt(window, params, at);
}

/** Returns when the oldest amount that counts at `now` stops counting. `now` if nothing counts. */
export function oldestLeavesAt({ bins }: Window, params: WindowParams, now: InstantMs): InstantMs {
  const oldest = bins.find(([bin, amount]) => amount > 0 && leavesAt(bin, params) > now);
  return oldest === undefined ? now : leavesAt(oldest[0], params);
}

export function count(window: Window, params: WindowParams, amount: number, now: InstantMs): void {
  const { bins } = window;
  window.bins = bins.filter(([bin]) => leavesAt(bin, params) > now);
  const last = window.bins.at(-1);
  const bin = Math.max(binOf(params, now), last?.[0] ?? 0);
  if (last?.[0] === bin) last[1] += amount;
  else window.bins.push([bin, amount]);
}

/**
 * Removes `amount` from what was counted at `takenAt`. If that has left the window, nothing changes, because later
 * amounts must still count in full.
 */
export function uncount(
  window: Window,
  params: WindowParams,
  amount: number,
  takenAt: InstantMs,
): void {
  const entry = window.bins.find(([bin]) => bin === binOf(params, takenAt));
  if (entry !== undefined) entry[1] = Math.max(0, entry[1] - amount);
}

export function add(window: Window, other: Window): void {
  const sums = new Map(window.bins);
  for (const [bin, amount] of other.bins) sums.set(bin, (sums.get(bin) ?? 0) + amount);
  window.bins = [...sums].toSorted(([a], [b]) => a - b);
}

/** Moves bins of the future back by the same number, so that the newest is now and they still expire one by one. */
export function rebase(window: Window, params: WindowParams, now: InstantMs): void {
  const ahead = Math.max(0, (window.bins.at(-1)?.[0] ?? 0) - binOf(params, now));
  if (ahead > 0) window.bins = window.bins.map(([bin, amount]) => [bin - ahead, amount]);
}

function binOf({ binMs }: WindowParams, at: InstantMs): number {
  return Math.floor(at / binMs);
}

function leavesAt(bin: number, { binMs, lengthMs, marginMs }: WindowParams): InstantMs {
  return after(instant((bin + 1) * binMs), lengthMs + marginMs);
}

import { after, instant, later, type InstantMs } from '../words/ids.ts';

/**
 * Amounts taken in the last while, added up in bins: an exact log would be as long as there are calls.
 * An entry is the number of its bin, counted from the epoch, and what was taken in it. The oldest first.
 */
export interface Window {
  bins: [bin: number, amount: number][];
}

export interface WindowParams {
  /** Maximum that may be taken in any stretch of `lengthMs`. */
  readonly limit: number;
  readonly lengthMs: number;
  readonly binMs: number;
  /** How long a bin stays beyond its last instant plus the length: messages travel unevenly. */
  readonly marginMs: number;
}

/** Maximum error of rounding of sums, as a part of the limit. */
const TOLERANCE = 1e-9;

export function emptyWindow(): Window {
  return { bins: [] };
}

/** Sums what counts against the limit at `now`. */
export function usedAt(window: Window, params: WindowParams, now: InstantMs): number {
  let used = 0;
  for (const [bin, amount] of window.bins) if (leavesAt(bin, params) > now) used += amount;
  return used;
}

/**
 * Finds the instant from which `amount` fits, if nobody else takes: `now` if it does already, Infinity if
 * never.
 */
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

/** Finds the instant at which nothing counts any more, if nobody takes: `now` if nothing does. */
export function wholeAt(window: Window, params: WindowParams, now: InstantMs): InstantMs {
  const last = window.bins.findLast(([, amount]) => amount > 0);
  return last === undefined ? now : later(now, leavesAt(last[0], params));
}

/** Computes what may still be taken before `at` for `amount` to fit then. Negative: it will not fit anyway. */
export function windowSpare(
  window: Window,
  params: WindowParams,
  amount: number,
  at: InstantMs,
): number {
  return params.limit * (1 + TOLERANCE) - amount - usedAt(window, params, at);
}

/** Finds when the oldest of what counts at `now` counts no longer; `now` if nothing counts. */
export function oldestLeavesAt({ bins }: Window, params: WindowParams, now: InstantMs): InstantMs {
  const oldest = bins.find(([bin, amount]) => amount > 0 && leavesAt(bin, params) > now);
  return oldest === undefined ? now : leavesAt(oldest[0], params);
}

/** Counts `amount` as taken now. */
export function count(window: Window, params: WindowParams, amount: number, now: InstantMs): void {
  const { bins } = window;
  window.bins = bins.filter(([bin]) => leavesAt(bin, params) > now);
  const last = window.bins.at(-1);
  const bin = Math.max(binOf(params, now), last?.[0] ?? 0);
  if (last?.[0] === bin) last[1] += amount;
  else window.bins.push([bin, amount]);
}

/**
 * Takes back `amount` of what was counted at `takenAt`. Nothing happens where that has left the window:
 * what others took since must not be counted for less.
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

/** Counts everything that another window counts. */
export function add(window: Window, other: Window): void {
  const sums = new Map(window.bins);
  for (const [bin, amount] of other.bins) sums.set(bin, (sums.get(bin) ?? 0) + amount);
  window.bins = [...sums].toSorted(([a], [b]) => a - b);
}

/** Brings bins of the future back to now, all by as much: they leave one after the other. */
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

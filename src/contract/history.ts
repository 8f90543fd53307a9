import { addCounts } from '../core/parts/histogram.ts';

/** How long a time a point of a pool's history is about; after a day only the longer ones are kept. */
export const MINUTE_MS = 60_000;
export const QUARTER_MS = 900_000;

/** How far back points of a minute reach, and points of a quarter of an hour. */
export const MINUTES_KEPT_MS = 86_400_000;
export const QUARTERS_KEPT_MS = 30 * 86_400_000;

/** Counts of a pool over a stretch of time. Points can be added up: over time, and over pools. */
export interface HistoryPoint {
  /** When the stretch began, in epoch milliseconds. Its length is that of the step that was asked for. */
  readonly at: number;
  readonly inUseMax: number;
  /** Slots in use times the milliseconds that they were. */
  readonly slotMs: number;
  /** The slots that could be granted at its end, with what was learned; null: any number. */
  readonly limit: number | null;
  /** The slots that were configured at its end, or assumed. */
  readonly limitConfigured: number | null;
  readonly queuedMax: number;
  /** Waits of granted calls, by the buckets of `BOUNDS_MS`. */
  readonly waits: readonly number[];
  readonly granted: number;
  readonly rejected: Readonly<Record<string, number>>;
  readonly refusals: Readonly<Record<string, number>>;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly usd: number;
}

/** Events that a pool marks in its own history. Changes by operators stand in the audit log. */
export type PoolMarkerKind =
  | 'upstream_pause'
  | 'breaker_opened'
  | 'breaker_closed'
  | 'ceiling_cut'
  | 'reset';

/** Something that changed how a pool grants, at an instant. */
export interface PoolMarker {
  /** Epoch milliseconds; of several the first. */
  readonly at: number;
  readonly kind: PoolMarkerKind;
  /** How often within a minute: one marker stands for all of them. */
  readonly times: number;
  /** Subject of the upstream's answer, as in `requests`; null: no answer of it. */
  readonly why: string | null;
  /** `until`, in epoch milliseconds; `from` and `to`, in slots; `leases`: how many were held. */
  readonly figures: Readonly<Record<string, number>>;
}

/** Maximum of markers that are kept of a pool, for as long as the points of its history. */
export const POOL_MARKERS_MAX = 500;

/** The past of one pool. */
export interface PoolHistory {
  /** The object's clock, in epoch milliseconds: up to when the last point tells. */
  readonly now: number;
  readonly points: readonly HistoryPoint[];
  /** Absent: from a release that marks nothing. */
  readonly markers?: readonly PoolMarker[];
}

/** Joins two points of one pool, an earlier and a later one. The limit is the later one's. */
export function joinInTime(earlier: HistoryPoint, later: HistoryPoint): HistoryPoint {
  return {
    ...added(earlier, later),
    at: earlier.at,
    inUseMax: Math.max(earlier.inUseMax, later.inUseMax),
    queuedMax: Math.max(earlier.queuedMax, later.queuedMax),
    limit: later.limit,
    limitConfigured: later.limitConfigured,
  };
}

/**
 * Joins the points of two pools of one group. The most in use and queued are bounds: the
 * pools need not have had them at the same instant.
 */
export function joinPools(a: HistoryPoint, b: HistoryPoint): HistoryPoint {
  const sum = (x: number | null, y: number | null) => (x === null || y === null ? null : x + y);
  return {
    ...added(a, b),
    at: a.at,
    inUseMax: a.inUseMax + b.inUseMax,
    queuedMax: a.queuedMax + b.queuedMax,
    limit: sum(a.limit, b.limit),
    limitConfigured: sum(a.limitConfigured, b.limitConfigured),
  };
}

/** Puts points, which are in the order of time, into steps. Steps in which nothing happened are left out. */
export function inSteps(points: readonly HistoryPoint[], stepMs: number): HistoryPoint[] {
  const steps: HistoryPoint[] = [];
  for (const point of points) {
    const at = Math.floor(point.at / stepMs) * stepMs;
    const last = steps.at(-1);
    if (last?.at === at) steps[steps.length - 1] = joinInTime(last, point);
    else steps.push({ ...point, at });
  }
  return steps;
}

type Sums = Pick<
  HistoryPoint,
  'slotMs' | 'waits' | 'granted' | 'rejected' | 'refusals' | 'inputTokens' | 'outputTokens' | 'usd'
>;

function added(a: HistoryPoint, b: HistoryPoint): Sums {
  return {
    slotMs: a.slotMs + b.slotMs,
    waits: addCounts(a.waits, b.waits),
    granted: a.granted + b.granted,
    rejected: addTallies(a.rejected, b.rejected),
    refusals: addTallies(a.refusals, b.refusals),
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    usd: a.usd + b.usd,
  };
}

function addTallies(
  a: Readonly<Record<string, number>>,
  b: Readonly<Record<string, number>>,
): Record<string, number> {
  const sums: Record<string, number> = { ...a };
  for (const [name, count] of Object.entries(b)) sums[name] = (sums[name] ?? 0) + count;
  return sums;
}

import type { HistoryPoint } from '../contract/history.ts';
import { sumOfCalls } from './call-counts.ts';
import { joinTenants } from './tenant-times.ts';
import { addCounts } from '../core/parts/histogram.ts';

/** Joins an earlier and a later point of one pool. The limit is that of the later one. */
export function joinInTime(earlier: HistoryPoint, later: HistoryPoint): HistoryPoint {
  return {
    ...added(earlier, later),
    ...peaks(earlier, later, Math.max),
    at: earlier.at,
    inUseMax: Math.max(earlier.inUseMax, later.inUseMax),
    queuedMax: Math.max(earlier.queuedMax, later.queuedMax),
    limit: later.limit,
    limitConfigured: later.limitConfigured,
  };
}

/**
 * Joins the points of two pools of one group. The maxima in use and queued are upper bounds, because the pools may have
 * reached them at different times.
 */
export function joinPools(a: HistoryPoint, b: HistoryPoint): HistoryPoint {
  const sum = (x: number | null, y: number | null) => (x === null || y === null ? null : x + y);
  return {
    ...added(a, b),
    ...peaks(a, b, (x, y) => x + y),
    at: a.at,
    inUseMax: a.inUseMax + b.inUseMax,
    queuedMax: a.queuedMax + b.queuedMax,
    limit: sum(a.limit, b.limit),
    limitConfigured: sum(a.limitConfigured, b.limitConfigured),
  };
}

/** Groups points, oldest first, into steps. Steps without points are left out. */
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

/** The counts of a point, which add up over time. */
export type Sums = Pick<
  HistoryPoint,
  | 'slotMs'
  | 'waits'
  | 'granted'
  | 'rejected'
  | 'refusals'
  | 'ended'
  | 'answeredErrors'
  | 'inputTokens'
  | 'outputTokens'
  | 'usd'
  | 'grantedByMember'
  | 'refusedByMember'
  | 'waitedFor'
  | 'waitedForMs'
  | 'tenantsWaited'
  | 'tenantsHeld'
  | 'callsOf'
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
    ended: addTallies(a.ended, b.ended),
    ...addAnswered(a, b),
    ...addMembers(a, b),
    waitedFor: addTallies(a.waitedFor, b.waitedFor),
    waitedForMs: addTallies(a.waitedForMs, b.waitedForMs),
    tenantsWaited: joinTenants(a.tenantsWaited, b.tenantsWaited),
    tenantsHeld: joinTenants(a.tenantsHeld, b.tenantsHeld),
    ...addCalls(a, b),
  };
}

function addAnswered(
  { answeredErrors: a = {} }: HistoryPoint,
  { answeredErrors: b = {} }: HistoryPoint,
): Pick<HistoryPoint, 'answeredErrors'> {
  const answeredErrors = addTallies(a, b);
  return Object.keys(answeredErrors).length === 0 ? {} : { answeredErrors };
}

/** Maximum combinations of key, upstream and model in a joined point. */
const KINDS_JOINED = 100;

function addCalls(
  { callsOf: a }: Pick<HistoryPoint, 'callsOf'>,
  { callsOf: b }: Pick<HistoryPoint, 'callsOf'>,
): Pick<HistoryPoint, 'callsOf'> {
  if (a === undefined || b === undefined) return {};
  return { callsOf: sumOfCalls([a, b], KINDS_JOINED) };
}

type PointCountsByMember = Pick<HistoryPoint, 'grantedByMember' | 'refusedByMember'>;

function addMembers(a: PointCountsByMember, b: PointCountsByMember): PointCountsByMember {
  const isOfMembers = a.grantedByMember !== undefined || b.grantedByMember !== undefined;
  if (!isOfMembers) return {};
  return {
    grantedByMember: addTallies(a.grantedByMember ?? {}, b.grantedByMember ?? {}),
    refusedByMember: addTallies(a.refusedByMember ?? {}, b.refusedByMember ?? {}),
  };
}

type Peaks = Pick<HistoryPoint, 'inUseMaxByMember'>;
type Join = (x: number, y: number) => number;

function peaks({ inUseMaxByMember: a }: Peaks, { inUseMaxByMember: b }: Peaks, join: Join): Peaks {
  if (a === undefined && b === undefined) return {};
  return { inUseMaxByMember: joinTallies(a ?? {}, b ?? {}, join) };
}

type Tallies = Readonly<Record<string, number>>;

const addTallies = (a: Tallies, b: Tallies): Tallies => joinTallies(a, b, (x, y) => x + y);

/** Joins the counts of each name. A missing name counts as 0. */
function joinTallies(a: Tallies, b: Tallies, join: Join): Tallies {
  const joined: Record<string, number> = { ...a };
  for (const [name, count] of Object.entries(b)) joined[name] = join(joined[name] ?? 0, count);
  return joined;
}

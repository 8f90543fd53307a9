import type { HistoryPoint, CallCounts, TenantTimes } from '../contract/history.ts';
import { addCounts } from '../core/parts/totals.ts';

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

const NAME_LENGTH_MAX = 128;

interface CallKind {
  readonly caller: string;
  readonly upstream: string;
  readonly model: string | null;
}

/**
 * Counts calls by key, upstream and model. Combinations beyond the maximum are not counted, because callers may make up
 * models.
 */
export class CallsByKind {
  readonly #counts = new Map<string, [string, string, string | null, number]>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  add({ caller, upstream, model }: CallKind, calls: number): void {
    const name = `${caller}\n${upstream}\n${model ?? ''}`;
    const known = this.#counts.get(name);
    if (known !== undefined) known[3] += calls;
    else if (this.#counts.size < this.#max) {
      this.#counts.set(name, [
        cut(caller),
        cut(upstream),
        model === null ? null : cut(model),
        calls,
      ]);
    }
  }

  /** Lists the combinations with the most calls first. */
  most(count: number): CallCounts {
    return [...this.#counts.values()].toSorted((a, b) => b[3] - a[3]).slice(0, count);
  }
}

/** Adds up counts, and keeps the combinations with the most calls. */
export function sumOfCalls(all: readonly CallCounts[], max = Infinity): CallCounts {
  // The inputs are bounded, so all of them are added up before any is left out.
  const sum = new CallsByKind(Infinity);
  for (const counts of all) {
    for (const [caller, upstream, model, calls] of counts) {
      sum.add({ caller, upstream, model }, calls);
    }
  }
  return sum.most(max);
}

function cut(name: string): string {
  return name.slice(0, NAME_LENGTH_MAX);
}

/** Maximum tenants of each kind in a point of one minute and in a joined point. */
export const TENANTS_OF_MINUTE = 5;
const TENANTS_JOINED = 10;

export function joinTenants(a: TenantTimes, b: TenantTimes): TenantTimes {
  const joined = new Map(a);
  for (const [tenant, ms] of b) joined.set(tenant, (joined.get(tenant) ?? 0) + ms);
  return longest(joined, TENANTS_JOINED);
}

/** Lists the tenants with the most time first. Tenants without any are left out. */
export function longest(times: Iterable<readonly [string, number]>, count: number): TenantTimes {
  return [...times]
    .filter(([, ms]) => ms > 0)
    .toSorted(([a, aMs], [b, bMs]) => bMs - aMs || (a < b ? -1 : 1))
    .slice(0, count);
}

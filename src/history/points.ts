import {
  MINUTE_MS,
  type HistoryPoint,
  type CallCounts,
  type TenantTimes,
} from '../contract/history.ts';
import { addCounts, quantileMs } from '../core/parts/totals.ts';
import {
  NOT_FAILING_AFTER_MS,
  NOTHING_LATELY_AFTER_MS,
  type LastHour,
  type Lately,
} from '../contract/status.ts';
import { refusedForLimits } from '../core/words/signal.ts';

/** Points of a pool's history: joined over time and over pools, and summed up over the last hour. */

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

/** One hour in steps of 5 minutes. */
const STEP_MS = 300_000;
const STEPS = 12;

/**
 * Sums up the last hour from its minutes, oldest first.
 *
 * @param sinceMs time from which data exists, or null if there is none
 */
export function lastHourOf(
  minutes: readonly HistoryPoint[],
  sinceMs: number | null,
  now: number,
): LastHour {
  const firstAt = Math.floor(now / STEP_MS) * STEP_MS - (STEPS - 1) * STEP_MS;
  const known = new Map(inSteps(minutes, STEP_MS).map((step) => [step.at, step]));
  const steps = Array.from({ length: STEPS }, (_, index) => known.get(firstAt + index * STEP_MS));
  return {
    granted: minutes.reduce((sum, { granted }) => sum + granted, 0),
    rejected: sumUp(minutes.map(({ rejected }) => rejected)),
    refusals: sumUp(minutes.map(({ refusals }) => refusals)),
    steps: {
      refused: steps.map((step, index) => {
        if (step !== undefined) return refusedForLimits(step.refusals);
        const endMs = firstAt + (index + 1) * STEP_MS;
        return sinceMs === null || endMs <= sinceMs ? null : 0;
      }),
      wait_p95_ms: steps.map((step) => (step === undefined ? null : quantileMs(step.waits, 0.95))),
    },
  };
}

function sumUp(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [name, count] of all.flatMap((each) => Object.entries(each))) {
    sums[name] = (sums[name] ?? 0) + count;
  }
  return sums;
}

/**
 * Minimum time without a served call for a group to count as failing. A few failures among served calls do not count.
 */
const UNSERVED_MS = MINUTE_MS;

/**
 * Minimum number of unclear ends (the caller left, or the upstream answered with an error status) without a served call
 * in between for a group to count as failing.
 */
const UNSERVED_MIN = 3;

/** Rejections that the caller asked for, and those that the group already shows as a state of its own. */
const NO_FAILURES: ReadonlySet<string> = new Set([
  'busy',
  'cancelled',
  'nested',
  'paused',
  'draining',
  'budget_exhausted',
]);

/**
 * Summarizes the calls of the last minutes from points of one minute, oldest first. Returns null if no call was served
 * and none failed.
 */
export function latelyOf(minutes: readonly HistoryPoint[], now: number): Lately | null {
  const recent = minutes.filter(({ at }) => at > now - NOTHING_LATELY_AFTER_MS);
  const served = recent.reduce((sum, point) => sum + servedIn(point), 0);
  const lastServed = recent.findLast((point) => servedIn(point) > 0);
  const unserved = recent.filter(({ at }) => lastServed === undefined || at > lastServed.at);
  const failed = unserved.filter(hasFailed);
  const [first] = failed;
  const last = failed.at(-1);
  if (served === 0 && first === undefined) return null;
  const servedAt = lastServed === undefined ? null : endOf(lastServed, now);
  const failures = failed.reduce((sum, point) => sum + failuresIn(point), 0);
  const unclear = failed.reduce((sum, point) => sum + unclearIn(point), 0);
  const answered = sumUp(failed.map(({ answeredErrors = {} }) => answeredErrors));
  const isFailing =
    last !== undefined &&
    now - endOf(last, now) < NOT_FAILING_AFTER_MS &&
    (servedAt === null || now - servedAt >= UNSERVED_MS) &&
    (failures > 0 || unclear >= UNSERVED_MIN);
  return {
    served,
    served_at: isoOf(servedAt),
    failing_since: isoOf(first?.at ?? null),
    failed_at: isoOf(last === undefined ? null : endOf(last, now)),
    is_failing: isFailing,
    refusals: sumUp(failed.map(({ refusals }) => refusals)),
    rejected: sumUp(failed.map(({ rejected }) => rejected)),
    ended: sumUp(failed.map(({ ended }) => ended)),
    ...(total(answered) > 0 && { answered_errors: answered }),
  };
}

function servedIn({ ended, answeredErrors = {} }: HistoryPoint): number {
  return (ended['success'] ?? 0) - total(answeredErrors);
}

function hasFailed(point: HistoryPoint): boolean {
  return failuresIn(point) + unclearIn(point) > 0;
}

/** Counts calls that were not served, possibly because of their callers. */
function unclearIn({ ended, answeredErrors = {} }: HistoryPoint): number {
  return (ended['cancelled'] ?? 0) + total(answeredErrors);
}

function failuresIn({ ended, refusals, rejected }: HistoryPoint): number {
  const atUpstream = (ended['failed'] ?? 0) + (ended['refused'] ?? 0) + total(refusals);
  const rejections = Object.entries(rejected).filter(([reason]) => !NO_FAILURES.has(reason));
  return atUpstream + total(Object.fromEntries(rejections));
}

function total(tally: Readonly<Record<string, number>>): number {
  return Object.values(tally).reduce((sum, count) => sum + count, 0);
}

function endOf({ at }: HistoryPoint, now: number): number {
  return Math.min(at + MINUTE_MS, now);
}

function isoOf(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

import { GAUGES, type GaugeRow } from '../contract/gauges.ts';
import {
  NOT_FAILING_AFTER_MS,
  NOTHING_LATELY_AFTER_MS,
  type MemberStatus,
  type PauseStatus,
  type LastHour,
  type Lately,
} from '../contract/status.ts';
import type { RefusalCount } from '../contract/reasons.ts';

/** How the figures of pools are joined: the current ones, and those of the last hours. */

type JoinRows = Readonly<Record<string, Pick<GaugeRow, 'shape' | 'join' | 'unused'>>>;

/** Names of the rows that contain a column. */
export type NamesWith<Rows, Column extends string> = {
  [Name in keyof Rows]: Column extends keyof Rows[Name] ? Name : never;
}[keyof Rows];

type BreakerPhase = MemberStatus['breaker'];

/** From the worst to the best. */
const BREAKERS: readonly BreakerPhase[] = ['open', 'half_open', 'closed'];

/** The joins of at least one value that is not null. */
const JOINS = {
  sum: (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0),
  tally: sumUp,
  max: (values: readonly number[]) => Math.max(...values),
  min: (values: readonly number[]) => Math.min(...values),
  earliest: (instants: readonly string[]) => instants.toSorted()[0],
  latest,
  first: ([value]: readonly unknown[]) => value,
  worst: (phases: readonly BreakerPhase[]) => BREAKERS.find((phase) => phases.includes(phase)),
} satisfies Record<NonNullable<GaugeRow['join']>, (values: never) => unknown>;

/**
 * Joins the values of several pools, or of a member in several pools, by the column `join` of each row. Rows without
 * that column are left out. Without any pool, the values are those of an unused group.
 */
export function joinRows<Rows extends JoinRows, Values extends object>(
  rows: Rows,
  all: readonly Values[],
): Pick<Values, NamesWith<Rows, 'join'> & keyof Values> {
  const joined: Record<string, unknown> = {};
  for (const [name, { join, unused }] of Object.entries(rows)) {
    if (join === undefined) continue;
    const value = all.length === 0 ? unused : joinValues(join, name, all);
    if (value !== undefined) joined[name] = value;
  }
  return joined as Pick<Values, NamesWith<Rows, 'join'> & keyof Values>;
}

function joinValues(join: keyof typeof JOINS, name: string, all: readonly object[]): unknown {
  const read = (one: object | undefined) => (one as Readonly<Record<string, unknown>>)[name];
  if (all.length === 1) return read(all[0]);
  const values = all.map(read).filter((value) => value !== undefined);
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return values[0];
  return (JOINS[join] as (values: readonly unknown[]) => unknown)(known);
}

export function worstBreaker(all: readonly { readonly breaker: BreakerPhase }[]): BreakerPhase {
  return BREAKERS.find((phase) => all.some((each) => each.breaker === phase)) ?? 'closed';
}

/** Returns the latest instant. null if there is none. */
export function latest(instants: readonly (string | null)[]): string | null {
  return (
    instants
      .filter((at) => at !== null)
      .toSorted()
      .at(-1) ?? null
  );
}

export function longestPause(
  all: readonly { readonly paused_until: string | null; readonly pause?: PauseStatus }[],
): { readonly paused_until: string | null; readonly pause?: PauseStatus } {
  const until = latest(all.map((each) => each.paused_until));
  const pause = all.find((each) => each.paused_until === until)?.pause;
  return { paused_until: until, ...(until !== null && pause !== undefined && { pause }) };
}

/** Returns the smallest bound. null means unbounded. */
export function smallest(bounds: readonly (number | null)[]): number | null {
  const bounded = bounds.filter((bound) => bound !== null);
  return bounded.length === 0 ? null : Math.min(...bounded);
}

/** Adds up bounds. Returns null if one of them is unbounded, or if there are none. */
export function sumOfBounds(bounds: readonly (number | null)[]): number | null {
  const bounded = bounds.filter((bound) => bound !== null);
  if (bounded.length < bounds.length || bounded.length === 0) return null;
  return bounded.reduce((sum, bound) => sum + bound, 0);
}

export function sumUp(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums = new Map<string, number>();
  for (const [name, value] of all.flatMap((each) => Object.entries(each))) {
    sums.set(name, (sums.get(name) ?? 0) + value);
  }
  return Object.fromEntries(sums);
}

/** Returns the longest of several quantiles of waits, because quantiles cannot be added up. */
function longest(waitsMs: readonly (number | null)[]): number | null {
  const known = waitsMs.filter((ms) => ms !== null);
  return known.length === 0 ? null : Math.max(...known);
}

const HOUR_MS = 3_600_000;

export const NOTHING_LATELY: LastHour = GAUGES.last_hour.unused;

export function joinLastHours(all: readonly LastHour[]): LastHour {
  const length = Math.max(0, ...all.map(({ steps }) => steps.refused.length));
  const steps = Array.from({ length }, (_, index) => index);
  return {
    granted: sumOf(all.map(({ granted }) => granted)),
    rejected: sumUp(all.map(({ rejected }) => rejected)),
    refusals: sumUp(all.map(({ refusals }) => refusals)),
    steps: {
      refused: steps.map((index) => sumOfKnown(all.map((each) => each.steps.refused[index]))),
      wait_p95_ms: steps.map((index) =>
        longest(all.map((each) => each.steps.wait_p95_ms[index] ?? null)),
      ),
    },
  };
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Adds up the known counts. null if none is known. */
function sumOfKnown(counts: readonly (number | null | undefined)[]): number | null {
  const known = counts.filter((count) => typeof count === 'number');
  return known.length === 0 ? null : sumOf(known);
}

/** Returns the last hour of an idle pool as it reported it, until the pool has been idle for an hour. */
export function restingHour(reported: LastHour, idleMs: number): LastHour {
  return idleMs < HOUR_MS ? reported : NOTHING_LATELY;
}

/** Figures of the last minutes are counted by minutes of the clock. */
const MINUTE_MS = 60_000;

/** Joins the last minutes of the pools of a group. The group is not failing if one of its pools serves calls. */
export function joinLately(all: readonly Lately[]): { readonly lately?: Lately } {
  const [first, ...others] = all;
  if (first === undefined) return {};
  if (others.length === 0) return { lately: first };
  const failing = all.filter(({ failing_since: since }) => since !== null);
  const [begin = null] = failing.flatMap(({ failing_since: since }) => since ?? []).toSorted();
  const servedAt = latest(all.map(({ served_at: at }) => at));
  const failedAt = latest(all.map(({ failed_at: at }) => at));
  const isServing = servedAt !== null && failedAt !== null && minutesTo(failedAt, servedAt) < 1;
  const answered = sumUp(failing.map(({ answered_errors: errors = {} }) => errors));
  const since = begin !== null && servedAt !== null && servedAt > begin ? servedAt : begin;
  return {
    lately: {
      served: all.reduce((sum, { served }) => sum + served, 0),
      served_at: servedAt,
      failing_since: isServing ? null : since,
      failed_at: isServing ? null : failedAt,
      is_failing: !isServing && failing.some(({ is_failing: isFailing }) => isFailing),
      refusals: isServing ? {} : sumUp(failing.map(({ refusals }) => refusals)),
      rejected: isServing ? {} : sumUp(failing.map(({ rejected }) => rejected)),
      ended: isServing ? {} : sumUp(failing.map(({ ended }) => ended)),
      ...(!isServing && Object.keys(answered).length > 0 && { answered_errors: answered }),
    },
  };
}

function minutesTo(later: string, earlier: string): number {
  return (Date.parse(later) - Date.parse(earlier)) / MINUTE_MS;
}

/** Returns the last minutes of an idle pool from its last report. */
export function restingLately(
  reported: Lately | undefined,
  idleMs: number,
): { readonly lately?: Lately } {
  if (reported === undefined || idleMs >= NOTHING_LATELY_AFTER_MS) return {};
  if (idleMs < NOT_FAILING_AFTER_MS) return { lately: reported };
  return { lately: { ...reported, is_failing: false } };
}

/** Reasons that pools count in `lately` themselves. */
const COUNTED_BY_POOLS: ReadonlySet<string> = new Set([
  'queue_full',
  'queue_timeout',
  'infeasible',
  'busy',
  'paused',
  'upstream_limited',
  'draining',
  'cancelled',
  'nested',
  'never_fits',
  'breaker_open',
  'members_out',
  'budget_exhausted',
]);

/** Adds the calls that Headgate rejected before they reached a pool, such as those without a known price. */
export function withRefusedHere(
  lately: Lately | undefined,
  refusals: readonly RefusalCount[],
  now: number,
): { readonly lately?: Lately } {
  const before = lately ?? NOTHING;
  const { served_at: servedAt } = before;
  const all = refusals.filter(
    ({ reason, last_at: at }) =>
      !COUNTED_BY_POOLS.has(reason) && (servedAt === null || at > servedAt),
  );
  const [first] = all.map(({ first_at: at }) => at).toSorted();
  const last = latest(all.map(({ last_at: at }) => at));
  if (first === undefined || last === null) return lately === undefined ? {} : { lately };
  const isUnserved = servedAt === null || now - Date.parse(servedAt) >= MINUTE_MS;
  const isRecent = now - Date.parse(last) < NOT_FAILING_AFTER_MS;
  const begin = servedAt !== null && servedAt > first ? servedAt : first;
  const since = before.failing_since;
  const counts = all.map(({ reason, count }) => ({ [reason]: count }));
  return {
    lately: {
      ...before,
      failing_since: since !== null && since < begin ? since : begin,
      failed_at: latest([before.failed_at, last]),
      is_failing: before.is_failing || (isUnserved && isRecent),
      rejected: sumUp([before.rejected, ...counts]),
    },
  };
}

const NOTHING: Lately = {
  served: 0,
  served_at: null,
  failing_since: null,
  failed_at: null,
  is_failing: false,
  refusals: {},
  rejected: {},
  ended: {},
};

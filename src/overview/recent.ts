import { GAUGES } from '../contract/gauges.ts';
import {
  NOT_FAILING_AFTER_MS,
  NOTHING_LATELY_AFTER_MS,
  type LastHour,
  type Lately,
} from '../contract/status.ts';
import type { RefusalCount } from '../contract/reasons.ts';
import { longest, sumUp, latest } from './joins.ts';

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

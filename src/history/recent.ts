import { MINUTE_MS, type HistoryPoint } from '../contract/history.ts';
import {
  NOT_FAILING_AFTER_MS,
  NOTHING_LATELY_AFTER_MS,
  type LastHour,
  type Lately,
} from '../contract/status.ts';
import { quantileMs } from '../core/parts/totals.ts';
import { refusedForLimits } from '../core/words/signal.ts';
import { inSteps } from './points.ts';

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

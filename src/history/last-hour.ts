import type { HistoryPoint } from '../contract/history.ts';
import type { LastHour } from '../contract/status.ts';
import { quantileMs } from '../core/parts/histogram.ts';
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

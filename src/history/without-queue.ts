/**
 * An estimate of what refusals and retries would have cost without the queue: docs/patterns.md has its assumptions, and
 * scripts/without-queue.ts plays through the days that its factors are from.
 */

interface EstimateRange {
  readonly from: number;
  readonly to: number;
}

/** Tries after the first for each call that waited, where each client makes three: most where there is one slot. */
export const ATTEMPTS_MORE: EstimateRange = { from: 0.7, to: 1.7 };

/** Calls that fail, for each that waited: the fewest where slots are many, the most where there is one. */
export const FAILED_CALLS: EstimateRange = { from: 0.1, to: 0.75 };

/** Paid calls that a failed one takes with it: one, or half of the other nine steps of a run of ten. */
export const STEPS_LOST = { one: 1, run: 4.5 } as const;

/** Works out the estimate of calls that waited and were served, at the mean cost of a call. */
export function withoutQueue(waited: number, meanUsd: number) {
  const failed = times(FAILED_CALLS, waited);
  return {
    tries_more: rounded(times(ATTEMPTS_MORE, waited)),
    failed_calls: rounded(failed),
    usd_one_step: times(failed, meanUsd * STEPS_LOST.one),
    usd_whole_run: times(failed, meanUsd * STEPS_LOST.run),
  };
}

function times({ from, to }: EstimateRange, factor: number): EstimateRange {
  return { from: from * factor, to: to * factor };
}

function rounded({ from, to }: EstimateRange): EstimateRange {
  return { from: Math.round(from), to: Math.round(to) };
}

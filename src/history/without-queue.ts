/**
 * Estimates what refusals and retries would have cost without the queue. docs/faq.md lists its assumptions.
 * scripts/without-queue.ts simulates the days from which its factors come.
 */

interface EstimateRange {
  readonly from: number;
  readonly to: number;
}

/** Extra attempts per queued call if each client makes three attempts. The maximum is for one slot. */
export const ATTEMPTS_MORE: EstimateRange = { from: 0.7, to: 1.7 };

/** Failed calls per queued call. The minimum is for many slots, the maximum for one. */
export const FAILED_CALLS: EstimateRange = { from: 0.1, to: 0.75 };

/** Paid calls lost with a failed one: one, or half of the other nine steps of a run of ten. */
export const STEPS_LOST = { one: 1, run: 4.5 } as const;

/** Estimates for queued and served calls, at the mean cost of a call. */
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

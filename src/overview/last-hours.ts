import { GAUGES } from '../contract/gauges.ts';
import type { LastHour } from '../contract/status.ts';
import { longest, sumUp } from './joins.ts';

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

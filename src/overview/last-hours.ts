import type { LastHour } from '../contract/status.ts';
import { longest, sumUp } from './joins.ts';

const HOUR_MS = 3_600_000;

/** An hour in which nothing happened. */
export const NOTHING_LATELY: LastHour = { granted: 0, rejected: {}, refusals: {}, steps: [] };

/** Adds up the last hours of several pools. */
export function joinLastHours(all: readonly LastHour[]): LastHour {
  const steps = Math.max(0, ...all.map((each) => each.steps.length));
  return {
    granted: all.reduce((sum, { granted }) => sum + granted, 0),
    rejected: sumUp(all.map(({ rejected }) => rejected)),
    refusals: sumUp(all.map(({ refusals }) => refusals)),
    steps: Array.from({ length: steps }, (_, index) => {
      const same = all.flatMap((each) => each.steps[index] ?? []);
      return {
        refused: same.reduce((sum, { refused }) => sum + refused, 0),
        wait_p95_ms: longest(same.map(({ wait_p95_ms: ms }) => ms)),
      };
    }),
  };
}

/** Reads what a pool that rests has said of its last hour: it holds until nobody has used the pool for one. */
export function restingHour(said: LastHour = NOTHING_LATELY, idleMs: number): LastHour {
  return idleMs < HOUR_MS ? said : NOTHING_LATELY;
}

import type fc from 'fast-check';

/** The share of the histories that a run tries. */
const SHARE = Number(process.env['MODEL_RUNS'] ?? 1);

/** Whether a run tries fewer histories than all. It leaves out what takes long and that the whole model checks. */
export const isPartial = SHARE < 1;

/** The cases that a run tries: the first one, or all. */
export function someOf<Case>(cases: readonly Case[]): readonly Case[] {
  return isPartial ? cases.slice(0, 1) : cases;
}

/**
 * How many histories a property is tried with, and from which seed: a new one each time, unless
 * MODEL_SEED names it. A failure prints its seed. MODEL_RUNS multiplies the number of histories (`npm test` sets 0.1);
 * MODEL_SHRINK=no reports the first counterexample as it is.
 */
export function runs<Values>(numRuns: number): fc.Parameters<Values> {
  const { MODEL_SEED, MODEL_SHRINK } = process.env;
  return {
    numRuns: Math.ceil(numRuns * SHARE),
    endOnFailure: MODEL_SHRINK === 'no',
    ...(MODEL_SEED === undefined ? {} : { seed: Number(MODEL_SEED) }),
  };
}

/**
 * Scales a minimum count over all histories of a property by MODEL_RUNS. A count of fewer histories varies more, so it may
 * be below its share by half, and by eight standard deviations where these are more: a history has many of them or none.
 * Then rare things need not happen.
 */
export function enough(count: number): number {
  if (!isPartial) return count;
  const expected = count * SHARE;
  return Math.ceil(Math.min(expected / 2, expected - 8 * Math.sqrt(expected))) - 1;
}

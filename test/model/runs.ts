import type fc from 'fast-check';

/** Below this, a minimum count says that something happens now and then. */
const RARE = 25;

/**
 * How many histories a property is tried with, and from which seed: a new one each time, unless
 * MODEL_SEED names it. A failure prints its seed. MODEL_RUNS multiplies the number of histories (`npm test` sets 0.3);
 * MODEL_SHRINK=no reports the first counterexample as it is.
 */
export function runs<Values>(numRuns: number): fc.Parameters<Values> {
  const { MODEL_SEED, MODEL_RUNS, MODEL_SHRINK } = process.env;
  return {
    numRuns: Math.ceil(numRuns * Number(MODEL_RUNS ?? 1)),
    endOnFailure: MODEL_SHRINK === 'no',
    ...(MODEL_SEED === undefined ? {} : { seed: Number(MODEL_SEED) }),
  };
}

/**
 * Scales a minimum count over all histories of a property by MODEL_RUNS. Of fewer histories half of the share is enough,
 * because their counts vary more. Then rare things need not happen at all.
 */
export function enough(count: number): number {
  const share = Number(process.env['MODEL_RUNS'] ?? 1);
  if (share >= 1) return count;
  return count < RARE ? -1 : Math.floor((count * share) / 2);
}

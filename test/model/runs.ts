import type fc from 'fast-check';

/**
 * How many histories a property is tried with, and from which seed: a new one each time, unless
 * MODEL_SEED names it. A failure prints its seed. MODEL_RUNS multiplies the number of histories;
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

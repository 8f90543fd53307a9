import { BODY_MIB_MIN } from '../../src/upstream/body/body-budget.ts';

/** Memory for the bodies of all calls, in MiB. 5,000 queued calls with 200 KB each fit. */
export const BODY_MEMORY_MIB = 2_048;

/** Parses the option for another amount. Throws if it is below the minimum. */
export function readBodyMemory(given: string): number {
  const mib = Number(given);
  if (Number.isSafeInteger(mib) && mib >= BODY_MIB_MIN) return mib;
  throw new TypeError(
    `--body-memory-mib ${given}: expected a whole number of MiB, at least ${BODY_MIB_MIN}.`,
  );
}

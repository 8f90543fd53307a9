import { BODY_MIB_MIN } from '../../src/upstream/body/body-budget.ts';

/** MiB that the bodies of calls may hold together: of 5,000 that wait in one group, 200 KB each fit. */
export const BODY_MEMORY_MIB = 2_048;

/** Reads an option that chooses another amount. Throws where the budget would not work with it. */
export function readBodyMemory(given: string): number {
  const mib = Number(given);
  if (Number.isSafeInteger(mib) && mib >= BODY_MIB_MIN) return mib;
  throw new TypeError(
    `--body-memory-mib ${given}: expected MiB as a whole number, ${BODY_MIB_MIN} or more.`,
  );
}

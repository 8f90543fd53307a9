import type { Mutation } from './mutation.ts';
import { BOUNDS } from './of-bounds.ts';
import { LEASES, RECOVERY } from './of-leases.ts';
import { BUDGETS, LIMITS } from './of-limits.ts';
import { LANES, ORDER } from './of-order.ts';
import { MODES, SEVERAL } from './of-several.ts';
import { SHARING } from './of-sharing.ts';
import { EVIDENCE } from './of-evidence.ts';
import { PROBES, SIGNALS } from './of-signals.ts';
import { GRANTING, WAITING } from './of-waiting.ts';

/** Every mutation. A test that notices none of them would prove nothing. */
export const MUTATIONS: readonly Mutation[] = [
  ...GRANTING,
  ...ORDER,
  ...LANES,
  ...SHARING,
  ...BOUNDS,
  ...SEVERAL,
  ...MODES,
  ...LEASES,
  ...RECOVERY,
  ...WAITING,
  ...LIMITS,
  ...BUDGETS,
  ...SIGNALS,
  ...EVIDENCE,
  ...PROBES,
];

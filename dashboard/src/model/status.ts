import type * as z from 'zod';
import type {
  groupStatusSchema,
  leaseSchema,
  waiterSchema,
} from '../../../src/contract/group-status.ts';
import type { warningSchema } from '../../../src/contract/attention.ts';

export type GroupView = z.output<typeof groupStatusSchema>;
export type LeaseView = z.output<typeof leaseSchema>;
export type WaiterView = z.output<typeof waiterSchema>;
export type WarningView = z.output<typeof warningSchema>;

/** A group with its leases and waiters, all of one moment. */
export interface Detail {
  readonly name: string;
  readonly leases: readonly LeaseView[];
  readonly waiters: readonly WaiterView[];
  /** Totals, which exceed the lists in very large groups. */
  readonly leases_total: number;
  readonly waiters_total: number;
  /** null if no group has this name. */
  readonly group: GroupView | null;
}

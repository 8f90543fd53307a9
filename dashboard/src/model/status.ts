import type * as z from 'zod';
import type {
  groupStatusSchema,
  leaseSchema,
  waiterSchema,
} from '../../../src/contract/admin/status-schemas.ts';
import type { warningSchema } from '../../../src/contract/warnings.ts';

/** A group at this moment. */
export type GroupView = z.output<typeof groupStatusSchema>;
/** A slot that is held. */
export type LeaseView = z.output<typeof leaseSchema>;
/** A call that waits for a slot. */
export type WaiterView = z.output<typeof waiterSchema>;
/** Something that an operator had better look at. */
export type WarningView = z.output<typeof warningSchema>;

/** One group with its holders and waiters, all of one moment. */
export interface Detail {
  readonly name: string;
  readonly leases: readonly LeaseView[];
  readonly waiters: readonly WaiterView[];
  /** More than are listed, where a group has very many. */
  readonly leases_total: number;
  readonly waiters_total: number;
  /** Null: there is none of that name. */
  readonly group: GroupView | null;
}

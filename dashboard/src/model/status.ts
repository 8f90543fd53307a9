import type * as z from 'zod';
import type {
  groupStatusSchema,
  leaseSchema,
  waiterSchema,
} from '../../../src/contract/admin/status-schemas.ts';
import type { warningSchema } from '../../../src/contract/warnings.ts';

/** A group at this moment. */
export type GroupStatus = z.output<typeof groupStatusSchema>;
/** A slot that is held. */
export type Lease = z.output<typeof leaseSchema>;
/** A call that waits for a slot. */
export type Waiter = z.output<typeof waiterSchema>;
/** Something that an operator had better look at. */
export type Warning = z.output<typeof warningSchema>;

/** One group with its holders and waiters, all of one moment. */
export interface Detail {
  readonly name: string;
  readonly leases: readonly Lease[];
  readonly waiters: readonly Waiter[];
  /** More than are listed, where a group has very many. */
  readonly leases_total: number;
  readonly waiters_total: number;
  /** Null: there is none of that name. */
  readonly group: GroupStatus | null;
}

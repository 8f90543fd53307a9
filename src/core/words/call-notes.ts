import type { CutReason } from './cut.ts';

/** Facts about a call that its holder reports at the end. They are logged only. No decision depends on them. */
export interface CallNotes {
  /** The upstream's own id of the call. Absent if it sent none. */
  readonly requestId?: string;
  /** Number of times the call was sent to an upstream, over all groups and members. Absent if unknown. */
  readonly sent?: number;
  /** Why the call was cut short. Absent if it was not, or if its caller left. */
  readonly cut?: CutReason;
}

import type { CutReason } from './cut.ts';

/** Facts that a holder knows of its call at the end, for whoever looks the call up. Nothing follows from it. */
export interface CallNotes {
  /** The upstream's own id of the call. Absent: it named none. */
  readonly requestId?: string;
  /** How often the call was sent to upstreams by then, wherever. Absent: not known. */
  readonly sent?: number;
  /** Why it was cut short. Absent: it was not, or its caller left. */
  readonly cut?: CutReason;
}

import type { LocalPrefetch, LocalSlot } from '../../../src/call/acquire/local-prefetch.ts';
import type { Effect, GroupEvent } from '../../../src/core/events.ts';
import { RENEWED_BEHIND_MS, type BoundRow } from '../../../src/core/parts/bound.ts';
import type { PrefetchedShare } from '../../../src/core/parts/prefetches.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { step } from '../../../src/core/step.ts';
import { isOfNewer, type Claim } from '../../../src/core/orphaned.ts';
import type { InstantMs } from '../../../src/core/words/ids.ts';
import { confirmWrite } from '../../../src/core/writes.ts';

/**
 * The places where the fleet asks the design what to do. `DESIGN` does as the core and the shell do; a saboteur
 * takes one rule out, and some history must notice.
 */
export interface Rules {
  readonly step: (state: GroupState, event: GroupEvent, now: InstantMs) => Effect[];
  /** The row of a write, as it goes to the disk after `last`. */
  readonly row: (row: BoundRow, last: BoundRow | null) => BoundRow;
  /** A write is known to have arrived. */
  readonly confirm: (state: GroupState, seq: number, now: InstantMs) => void;
  /** A new instance has loaded; `before` is the one that it replaces. */
  readonly load: (state: GroupState, before: GroupState | null) => void;
  /** Whether a renewal is answered, by when the last write that has arrived was issued, and the last one of all. */
  readonly mayAcknowledge: (arrivedAt: InstantMs, now: InstantMs, issuedAt: InstantMs) => boolean;
  readonly refuses: (state: GroupState, claim: Claim) => boolean;
  readonly believesGone: (own: number, theirs: number) => boolean;
  /** An isolate takes a lent slot for a call that starts. */
  readonly borrow: (prefetch: LocalPrefetch, now: InstantMs) => LocalSlot | null;
  /** Whether an isolate adds lent slots to the loan that it had last, begins to count anew, or is too late to use them. */
  readonly takeIn: (
    last: LocalPrefetch | null,
    prefetched: PrefetchedShare,
  ) => 'adds' | 'anew' | 'late';
  /** Whether an isolate takes it for a renewal that its loan is called back. */
  readonly recallRenews: boolean;
  /** Whether an instance ends whose write does not arrive. */
  readonly givesUp: boolean;
}

export const DESIGN: Rules = {
  step,
  row: (row) => row,
  confirm: confirmWrite,
  load: () => {},
  mayAcknowledge: (arrivedAt, now) => now < arrivedAt + RENEWED_BEHIND_MS,
  refuses: isOfNewer,
  believesGone: (own, theirs) => theirs >= own,
  borrow: (prefetch) => prefetch.take(),
  takeIn: (last, prefetched) => {
    if (last?.comesAfter(prefetched) === true) return 'late';
    return last?.id === prefetched.loan ? 'adds' : 'anew';
  },
  recallRenews: false,
  givesUp: true,
};

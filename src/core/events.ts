import type { CallNotes, LeaseOutcome, Rejection } from './words/outcome.ts';
import type { LeaseId, MemberId, TicketId } from './words/ids.ts';
import type { GroupSettings } from './words/settings.ts';
import type { UpstreamSignal } from './words/signal.ts';
import type { Lane, Ticket, Settlement } from './words/ticket.ts';
import type { QueuePosition, WaitReason } from './parts/decision-log.ts';
import type { NewCorrection } from './parts/spend.ts';
import type { PrefetchedShare, KeeperReport } from './parts/prefetches.ts';
import type { HandedGroup, ActiveLease } from './state.ts';
import type { Claim } from './orphaned.ts';

export type GroupEvent =
  /**
   * An acquire call, first or repeated. It is parked for at most `sliceMs`. With `mayAskLater` it may be deferred, and
   * polls when it is asked to. Without it, the call is always parked.
   */
  | {
      readonly kind: 'acquire';
      readonly ticket: Ticket;
      readonly leaseId: LeaseId;
      readonly sliceMs: number;
      readonly mayAskLater?: boolean;
      /**
       * All earlier acquire calls of the ticket have ended, and one answer was lost. No other call can deliver a lease.
       */
      readonly isAnew?: boolean;
    }
  /** With `claim`, the lease is held by id from now on. */
  | { readonly kind: 'renew'; readonly leaseId: LeaseId; readonly claim?: Claim }
  /** The call now has its slots in all its groups. */
  | { readonly kind: 'confirm'; readonly leaseId: LeaseId }
  | {
      readonly kind: 'release';
      readonly leaseId: LeaseId;
      readonly outcome: LeaseOutcome;
      /** The upstream's own count. null if unknown, in which case the reservation counts. */
      readonly settlement: Settlement | null;
      /** The upstream's HTTP status. null or absent if unknown. It is logged only. */
      readonly status?: number | null;
      /** The lease as its holder knows it. A lease that the group does not know may come from an earlier instance. */
      readonly claim?: Claim;
      /**
       * This is the only release of the lease. Its holder sent no message about it to another instance and sends none
       * before the answer.
       */
      readonly isSole?: boolean;
      /** Logged only. No decision depends on it. */
      readonly notes?: CallNotes;
    }
  /** Another pool is full for about `forMs`. Calls that also need slots there are passed over. */
  | { readonly kind: 'pass_over'; readonly pool: string; readonly forMs: number }
  /** The upstream answered the call. `isRepeat` if it gave this call the same answer before. */
  | {
      readonly kind: 'report';
      readonly leaseId: LeaseId;
      readonly signal: UpstreamSignal;
      readonly isRepeat: boolean;
      /** As in a release. */
      readonly claim?: Claim;
    }
  /** The answer that carried the lease was disposed of. */
  | { readonly kind: 'detach'; readonly leaseId: LeaseId; readonly attachment: number }
  /** The caller left. Its ticket is removed from the queue, and a lease that it was granted meanwhile ends. */
  | { readonly kind: 'cancel'; readonly ticketId: TicketId }
  /** A holder resumes its lease with a new instance, or after the lease had expired. */
  | {
      readonly kind: 'resume';
      readonly claim: Claim;
    }
  /** An isolate renews its prefetched slots. `isNew` if a different answer keeps them from now on. */
  | {
      readonly kind: 'keep_loan';
      readonly loanId: LeaseId;
      readonly isNew: boolean;
      readonly told: KeeperReport;
    }
  /** The answer that kept prefetched slots was disposed of. */
  | { readonly kind: 'leave_loan'; readonly loanId: LeaseId; readonly attachment: number }
  /** An isolate returns prefetched slots. Slots that the group does not know may come from an earlier instance. */
  | {
      readonly kind: 'give_back';
      readonly loanId: LeaseId;
      readonly claims: readonly Claim[];
      readonly told: KeeperReport;
    }
  /** Another instance hands over its leases to this one. */
  | {
      readonly kind: 'take_over';
      readonly handed: HandedGroup;
      /** This instance has no use and no lessons of its own. */
      readonly isNew: boolean;
      /** The other instance has handed over to this one before, so its use is already counted. */
      readonly isRepeat: boolean;
      /** Exceeds every attachment number that the other instance issued. */
      readonly firstAttachment: number;
    }
  /** An operator revokes a lease. */
  | { readonly kind: 'revoke'; readonly leaseId: LeaseId }
  | { readonly kind: 'reconfigure'; readonly settings: GroupSettings }
  /** An operator moves a waiter to the front, to another lane, or both. */
  | {
      readonly kind: 'promote';
      readonly ticketId: TicketId;
      readonly lane: Lane | null;
      readonly toFront: boolean;
    }
  /** An operator ends the ejection of a member. */
  | { readonly kind: 'bring_back'; readonly member: MemberId }
  /** An operator corrects the spend of the group or of a member, or reverts such a correction. */
  | { readonly kind: 'correct_spend'; readonly correction: NewCorrection }
  | { readonly kind: 'undo_correction'; readonly id: string }
  /** An operator discards everything learned about the upstream. */
  | { readonly kind: 'relearn' }
  /** The routing changed. All waiters are returned to be routed again. */
  | { readonly kind: 'move' }
  /** Time in which no message could arrive, because the process was frozen or its clock was set forward. */
  | { readonly kind: 'held_up'; readonly lostMs: number }
  | { readonly kind: 'tick' };

/** Instructions to the shell, to be carried out in order. */
export type Effect =
  /** Store changes soon. With `isAhead`, the write follows this turn, so that no grant has to wait for it. */
  | { readonly kind: 'write'; readonly isAhead: boolean }
  /**
   * Answer the ticket's parked acquire call with the lease and its current attachment. The answer waits for a write
   * unless the stored bound covers it.
   */
  | {
      readonly kind: 'grant';
      readonly ticketId: TicketId;
      readonly lease: ActiveLease;
      readonly isCovered: boolean;
      /** Why the call waited. Absent if it was granted at once, or if the answer is repeated. */
      readonly waitedFor?: WaitReason;
      /** Slots that the answer prefetches to its isolate. Absent if there are none. */
      readonly lent?: PrefetchedShare;
    }
  /**
   * The ticket still waits, and no acquire call is parked for it. Its caller polls after `askAgainMs`, or at once if
   * that is null.
   */
  | (QueuePosition & {
      readonly kind: 'pending';
      readonly ticketId: TicketId;
      readonly askAgainMs: number | null;
    })
  | {
      readonly kind: 'reject';
      readonly ticketId: TicketId;
      readonly rejection: Rejection;
      /** Why the call waited. Absent if it did not. */
      readonly waitedFor?: WaitReason;
    }
  /**
   * The call cannot be granted in this group now. `waitMs` is the expected wait, or null if there is no estimate
   * because no call ends.
   */
  | { readonly kind: 'declined'; readonly ticketId: TicketId; readonly waitMs: number | null }
  /** The attempt has ended, before this acquire call or while it waited. */
  | { readonly kind: 'gone'; readonly ticketId: TicketId }
  | { readonly kind: 'moved'; readonly ticketId: TicketId }
  /** Scopes hold some calls, and this call's body was not read. The call is not queued yet. */
  | {
      readonly kind: 'unread';
      readonly ticketId: TicketId;
      /** Only the session of the call is needed, because the call must wait and its tenant has other calls. */
      readonly of?: 'session';
    }
  /** Notify the keeper that its prefetched slots are recalled. */
  | { readonly kind: 'recalled'; readonly loanId: LeaseId }
  /** Notify the holder that it must release the lease. */
  | { readonly kind: 'revoked'; readonly leaseId: LeaseId }
  /** The lease has no holder any more. */
  | { readonly kind: 'ended'; readonly leaseId: LeaseId };

import type { CallNotes } from './words/call-notes.ts';
import type { LeaseId, MemberId, TicketId } from './words/ids.ts';
import type { LeaseOutcome } from './words/outcome.ts';
import type { Rejection } from './words/rejection.ts';
import type { GroupSettings } from './words/settings.ts';
import type { UpstreamSignal } from './words/signal.ts';
import type { Lane, Ticket } from './words/ticket.ts';
import type { Settlement } from './words/usage.ts';
import type { QueuePosition, WaitReason } from './parts/decision-log.ts';
import type { NewCorrection } from './parts/spend.ts';
import type { PrefetchedShare, KeeperReport } from './parts/prefetches.ts';
import type { HandedGroup, ActiveLease } from './state.ts';
import type { Claim } from './orphaned.ts';

/** An event that can happen to a group. */
export type GroupEvent =
  /**
   * A caller asks for a slot, or asks again; it stays parked for `sliceMs` at most. `mayAskLater`: it need not be
   * parked, and asks again when it is told to. Absent: it is parked.
   */
  | {
      readonly kind: 'acquire';
      readonly ticket: Ticket;
      readonly leaseId: LeaseId;
      readonly sliceMs: number;
      readonly mayAskLater?: boolean;
      /** All acquire calls of the ticket before this one have ended, and one was lost: no other can bring it a lease. */
      readonly isAnew?: boolean;
    }
  /** `claim`: its holder holds it by its id, from now on if it did not before. */
  | { readonly kind: 'renew'; readonly leaseId: LeaseId; readonly claim?: Claim }
  /** The call has its slots in all its groups now. */
  | { readonly kind: 'confirm'; readonly leaseId: LeaseId }
  | {
      readonly kind: 'release';
      readonly leaseId: LeaseId;
      readonly outcome: LeaseOutcome;
      /** The upstream's own count; null: not known, and what was reserved counts. */
      readonly settlement: Settlement | null;
      /** The upstream's HTTP status; null or absent: not known. Noted, and nothing follows from it. */
      readonly status?: number | null;
      /** The lease as its holder knows it: one that the group does not know may be of an earlier instance. */
      readonly claim?: Claim;
      /** Its holder has said nothing of the lease to any other instance, and will not before this one has answered. */
      readonly isSole?: boolean;
      /** Noted, and nothing follows from it. */
      readonly notes?: CallNotes;
    }
  /** Another pool is full for about so long: calls that need slots there too are passed over. */
  | { readonly kind: 'pass_over'; readonly pool: string; readonly forMs: number }
  /** The upstream answered the call. `isRepeat`: it said so to this call before. */
  | {
      readonly kind: 'report';
      readonly leaseId: LeaseId;
      readonly signal: UpstreamSignal;
      readonly isRepeat: boolean;
      /** As with a release. */
      readonly claim?: Claim;
    }
  /** An answer that carried the lease was dropped, with whatever held it. */
  | { readonly kind: 'detach'; readonly leaseId: LeaseId; readonly attachment: number }
  /** The caller left: out of the queue, or out of the lease it was granted meanwhile. */
  | { readonly kind: 'cancel'; readonly ticketId: TicketId }
  /** A holder takes its lease up again with a new instance, or after the lease had lapsed. */
  | {
      readonly kind: 'resume';
      readonly claim: Claim;
    }
  /** Somebody keeps a loan for its isolate; `isNew`: by another answer than before. */
  | {
      readonly kind: 'keep_loan';
      readonly loanId: LeaseId;
      readonly isNew: boolean;
      readonly told: KeeperReport;
    }
  /** The answer by which somebody kept a loan was dropped. */
  | { readonly kind: 'leave_loan'; readonly loanId: LeaseId; readonly attachment: number }
  /** An isolate gives lent slots back. Those that the group does not know may be of an earlier instance. */
  | {
      readonly kind: 'give_back';
      readonly loanId: LeaseId;
      readonly claims: readonly Claim[];
      readonly told: KeeperReport;
    }
  /** Another instance hands its leases to this one. */
  | {
      readonly kind: 'take_over';
      readonly handed: HandedGroup;
      /** This one has used and learned nothing by itself. */
      readonly isNew: boolean;
      /** The other instance has handed over to this one before: what it has used counts already. */
      readonly isRepeat: boolean;
      /** Exceeds every attachment that the other instance gave out. */
      readonly firstAttachment: number;
    }
  /** An operator takes a lease away. */
  | { readonly kind: 'revoke'; readonly leaseId: LeaseId }
  | { readonly kind: 'reconfigure'; readonly settings: GroupSettings }
  /** An operator puts a waiter first, or into another lane, or both. */
  | {
      readonly kind: 'promote';
      readonly ticketId: TicketId;
      readonly lane: Lane | null;
      readonly toFront: boolean;
    }
  /** An operator brings a member back that a refusal took out. */
  | { readonly kind: 'bring_back'; readonly member: MemberId }
  /** An operator corrects the spend of the group's or a member's budget, or undoes such a correction. */
  | { readonly kind: 'correct_spend'; readonly correction: NewCorrection }
  | { readonly kind: 'undo_correction'; readonly id: string }
  /** An operator knows better: what was learned of the upstream is forgotten. */
  | { readonly kind: 'relearn' }
  /** Calls may go another way from now on: everybody who waits is sent back to be routed again. */
  | { readonly kind: 'move' }
  /** Time passed in which nobody could be heard, the process being frozen or its clock set forward. */
  | { readonly kind: 'held_up'; readonly lostMs: number }
  /** Time passed. */
  | { readonly kind: 'tick' };

/** An order to the shell, to be carried out in the order of the list. */
export type Effect =
  /** Write what is to be kept before long; `isAhead`: right after this turn, so that no grant has to wait for it. */
  | { readonly kind: 'write'; readonly isAhead: boolean }
  /**
   * Answer the ticket's parked acquire call with the lease, under its current attachment; behind a write, unless
   * what is on disk covers it.
   */
  | {
      readonly kind: 'grant';
      readonly ticketId: TicketId;
      readonly lease: ActiveLease;
      readonly isCovered: boolean;
      /** The reason of its wait. Absent: it was granted at once, or is told so once more. */
      readonly waitedFor?: WaitReason;
      /** Slots that its isolate is lent with the answer. Absent: none. */
      readonly lent?: PrefetchedShare;
    }
  /**
   * The ticket still waits, and nobody is parked for it until its caller asks again: after `askAgainMs`, or at once
   * (null).
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
      /** The reason of its wait. Absent: it did not wait. */
      readonly waitedFor?: WaitReason;
    }
  /** A try that cannot be granted now, with the expected wait. Null: nothing ends, so none can be foreseen. */
  | { readonly kind: 'declined'; readonly ticketId: TicketId; readonly waitMs: number | null }
  /** The attempt has ended, before it was asked for or while it waited. */
  | { readonly kind: 'gone'; readonly ticketId: TicketId }
  | { readonly kind: 'moved'; readonly ticketId: TicketId }
  /** Scopes hold some calls, and this call's body was not read. The call is not queued yet. */
  | {
      readonly kind: 'unread';
      readonly ticketId: TicketId;
      /** Only the session of the call is wanted, because it has to wait and its tenant has other calls. */
      readonly of?: 'session';
    }
  /** Tell the keeper of a loan that its slots are wanted back. */
  | { readonly kind: 'recalled'; readonly loanId: LeaseId }
  /** Tell the holder that it must let go. */
  | { readonly kind: 'revoked'; readonly leaseId: LeaseId }
  /** The lease has no holder any more. */
  | { readonly kind: 'ended'; readonly leaseId: LeaseId };

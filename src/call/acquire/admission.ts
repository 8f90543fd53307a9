import type { RunLease } from '../../contract/rpc/runs-rpc.ts';
import type { RateRoom } from '../../core/parts/rate-room.ts';
import type { CallNotes } from '../../core/words/call-notes.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { RefusalScope } from '../../core/words/scope.ts';
import type { UpstreamSignal } from '../../core/words/signal.ts';
import type { Settlement } from '../../core/words/usage.ts';
import type { HoldKind } from '../../core/words/ticket.ts';
import type { RequestedLanes } from '../../routing/lane-of.ts';
import { timeoutMsOf } from '../../routing/timeouts.ts';
import type { Placement } from '../../routing/placement.ts';
import type { Rounds } from './rounds.ts';
import type { Waited } from './waited.ts';

/** One logical call, as its caller presents it to the queues. */
export interface CallTicket extends RequestedLanes {
  readonly enqueuedAt: number;
  /** How long the caller is willing to wait; null: as long as the groups allow. */
  readonly maxWaitMs: number | null;
  /** How long its key lets it wait, whatever the groups say; null: the key says nothing. */
  readonly keyTimeoutMs: number | null;
  readonly slots: number;
  readonly agent: string | null;
  readonly agentStartedAt: number | null;
  /** Leases of the call that this one is made for. */
  readonly parents: readonly string[];
  readonly rounds: Rounds;
  /** The kind of the holder to be. Absent: a call. */
  readonly kind?: HoldKind;
  /** Its leases are held by their ids. Absent: by their answers. */
  readonly byId?: boolean;
}

/** Tells when a ticket has waited for as long as it may in a group, as far as the Worker knows the group. */
export function waitsUntil(
  ticket: Pick<CallTicket, 'enqueuedAt' | 'maxWaitMs' | 'keyTimeoutMs' | keyof RequestedLanes>,
  placement: Placement,
): number {
  const { enqueuedAt, maxWaitMs } = ticket;
  return enqueuedAt + Math.min(maxWaitMs ?? Infinity, timeoutMsOf(ticket, placement));
}

/** The member that a group has granted a call at. */
export interface GrantedMember {
  readonly id: string;
  /** Version of the configuration by which it has it. */
  readonly configVersion: number;
}

/** Settles a call as one of its groups counts it. */
export type Settle = (placement: Placement) => Settlement;

/** The slots of a call in all its groups, or the leave to go without. */
export interface Admission {
  readonly placements: readonly Placement[];
  /** The member that its group has granted it at; null: no group has. */
  readonly member: GrantedMember | null;
  /** Narrow first; fewer than groups where one let the call pass without a slot. */
  readonly leaseIds: readonly string[];
  /** Whether others waited for one of its slots when it was granted, and very likely still do. */
  readonly hasWaiters: boolean;
  /** Room in the limits of requests and tokens of the call's key, else of its narrowest group that has some. */
  readonly rates: readonly RateRoom[];
  /** Its longest wait in one of its groups. Null: it was granted at once in all of them. */
  readonly waited: Waited | null;
  /** Notes the upstream's answer, and what is known of the call besides. Undefined: nothing. */
  reportAnswer(status: number, notes: CallNotes | undefined): void;
  /**
   * Tells the groups that want to know it that the upstream took the call. What its headers warn of is
   * about the narrowest group that stands for it. What it proves of other members their group is told in any case.
   */
  reportServed(
    warning: UpstreamSignal | null,
    proof: Pick<UpstreamSignal, 'isMistake' | 'blamed'>,
  ): void;
  /** Tells the group that a signal is about, if any is. */
  report(signal: UpstreamSignal, scope: RefusalScope, isRepeat: boolean): void;
  keep(onRevoked: () => void): void;
  /** Moves the slot in the pool of the call's key to the pool of its account, as soon as that is known. */
  moveToAccount(placement: Placement, account: string): void;
  /** Its leases as they are told to whoever holds them for a run of the call. Null: one is not to be held. */
  forRun(status: number): Promise<readonly RunLease[] | null>;
  /** Leaves its leases to a run that holds them. */
  letGo(): void;
  /** `settle` says what the call has used, by what each group counts; without it, what was reserved. */
  release(outcome: LeaseOutcome, settle?: Settle): Promise<void>;
}

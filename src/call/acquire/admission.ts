import type { RunLease } from '../../contract/rpc/lease-objects-rpc.ts';
import type { RateRoom } from '../../core/parts/rates.ts';
import type { CallNotes, LeaseOutcome } from '../../core/words/outcome.ts';
import type { RefusalScope, UpstreamSignal } from '../../core/words/signal.ts';
import type { HoldKind } from '../../core/words/ticket.ts';
import { timeoutMsOf, type RequestedLanes } from '../../routing/placed-call.ts';
import type { Placement } from '../../routing/placement.ts';
import type { Settle, Waited } from '../results/result.ts';

/** One logical call, as its caller presents it to the queues. */
export interface CallTicket extends RequestedLanes {
  readonly enqueuedAt: number;
  /** Maximum wait that the caller accepts. null means as long as the groups allow. */
  readonly maxWaitMs: number | null;
  /** Maximum wait that the key sets, which overrides the groups. null if the key sets none. */
  readonly keyTimeoutMs: number | null;
  readonly slots: number;
  readonly agent: string | null;
  readonly agentStartedAt: number | null;
  /** Leases of the call for which this one is made. */
  readonly parents: readonly string[];
  readonly rounds: Pick<Rounds, 'begin' | 'noteCancelled'>;
  /** What will hold the slot. Absent for a call. */
  readonly kind?: HoldKind;
  /** Present if its leases are held by their ids. Otherwise their answers hold them. */
  readonly byId?: boolean;
}

/** When the maximum wait of a ticket in a group ends, as far as the Worker knows the group. */
export function waitsUntil(
  ticket: Pick<CallTicket, 'enqueuedAt' | 'maxWaitMs' | 'keyTimeoutMs' | keyof RequestedLanes>,
  placement: Placement,
): number {
  const { enqueuedAt, maxWaitMs } = ticket;
  return enqueuedAt + Math.min(maxWaitMs ?? Infinity, timeoutMsOf(ticket, placement));
}

export interface GrantedMember {
  readonly id: string;
  readonly configVersion: number;
}

/** The slots of a call in all its groups, including permissions to run without one. */
export interface Admission {
  readonly placements: readonly Placement[];
  /** The member at which its group has granted it. null if no group has. */
  readonly member: GrantedMember | null;
  /** Narrowest group first. There are fewer than groups if the call bypasses one. */
  readonly leaseIds: readonly string[];
  /** Whether other calls were queued for one of its slots at the grant. Most likely they still are. */
  readonly hasWaiters: boolean;
  /** Remaining rate limits of the call's key, or of its narrowest group with such limits. */
  readonly rates: readonly RateRoom[];
  /** Its longest wait in one of its groups. null if all granted it immediately. */
  readonly waited: Waited | null;
  /** Notes the upstream's answer and other facts about the call, if there are any. */
  reportAnswer(status: number, notes: CallNotes | undefined): void;
  /**
   * Reports that the upstream accepted the call to the groups that request this. The warning in its headers goes to the
   * narrowest group that represents the upstream. Proof about other members always goes to their group.
   */
  reportServed(
    warning: UpstreamSignal | null,
    proof: Pick<UpstreamSignal, 'isMistake' | 'blamed'>,
  ): void;
  /** Reports a signal to the group that it concerns, if there is one. */
  report(signal: UpstreamSignal, scope: RefusalScope, isRepeat: boolean): void;
  keep(onRevoked: () => void): void;
  /** Moves the slot from the pool of the call's key to the pool of its account, once that is known. */
  moveToAccount(placement: Placement, account: string): void;
  /** Its leases in the form that the holder of a run needs. null if one cannot be held. */
  forRun(status: number): Promise<readonly RunLease[] | null>;
  /** Leaves its leases to the run that holds them. */
  letGo(): void;
  /** `settle` computes the usage as each group counts it. Without it the reservation counts. */
  release(outcome: LeaseOutcome, settle?: Settle): Promise<void>;
}

export interface Round {
  readonly ticketId: string;
  /** The first attempt number of the round. Attempts of earlier rounds may have ended. */
  readonly attempt: number;
}

const ATTEMPTS_PER_ROUND = 10;

/**
 * The ids with which a call asks its pools. It keeps one ticket until a pool was sent a cancellation. That pool answers
 * the ticket with `gone` from then on, although the call may continue elsewhere, by a newer configuration, or in
 * another round. Its position does not depend on the id.
 */
export class Rounds {
  #ticketId: string | null = null;
  #begun = 0;

  begin(): Round {
    this.#ticketId ??= crypto.randomUUID();
    const attempt = this.#begun * ATTEMPTS_PER_ROUND + 1;
    this.#begun += 1;
    return { ticketId: this.#ticketId, attempt };
  }

  /** Starts the next round with a new ticket. */
  noteCancelled(): void {
    this.#ticketId = null;
    this.#begun = 0;
  }
}

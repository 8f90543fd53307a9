import { RpcTarget } from 'cloudflare:workers';
import type { LeaseRpc, RenewAnswer } from '../contract/rpc/group-rpc.ts';
import type { CallNotes, LeaseOutcome } from '../core/words/outcome.ts';
import type { InstantMs, LeaseId } from '../core/words/ids.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import type { Settlement } from '../core/words/ticket.ts';
import type { Timers } from '../runtime/async.ts';

/** Attachments per millisecond, so that those of a later instance are larger than all of an earlier one. */
const ATTACHMENTS_PER_MS = 1_000;

export function firstAttachment(startedAt: InstantMs): number {
  return startedAt * ATTACHMENTS_PER_MS;
}

/** Everything that a handle forwards to its pool. */
export interface LeaseKeeper {
  renew(leaseId: LeaseId, status: number | null): Promise<RenewAnswer>;
  report(leaseId: LeaseId, signal: UpstreamSignal, isRepeat: boolean): Promise<void> | void;
  release(
    leaseId: LeaseId,
    outcome: LeaseOutcome,
    status: number | null,
    settlement: Settlement | undefined,
    isSole?: boolean,
    notes?: CallNotes,
    /** Attachment of the answer that carried the lease. */
    attachment?: number,
  ): Promise<void> | void;
  confirm(leaseId: LeaseId): Promise<void> | void;
  detach(leaseId: LeaseId, attachment: number): Promise<void> | void;
  passOver(pool: string, forMs: number): Promise<void> | void;
}

/**
 * One answer's hold on a lease. The runtime disposes of it when the context of its Worker ends for any reason, so a
 * Worker that dies releases its slot at once.
 */
export class LeaseHandle extends RpcTarget implements LeaseRpc {
  readonly #keeper: LeaseKeeper;
  readonly #leaseId: LeaseId;
  readonly #attachment: number;

  constructor(keeper: LeaseKeeper, leaseId: LeaseId, attachment: number) {
    super();
    this.#keeper = keeper;
    this.#leaseId = leaseId;
    this.#attachment = attachment;
  }

  renew(status: number | null): Promise<RenewAnswer> {
    return this.#keeper.renew(this.#leaseId, status);
  }

  async confirm(): Promise<void> {
    await this.#keeper.confirm(this.#leaseId);
  }

  async passOver(pool: string, forMs: number): Promise<void> {
    await this.#keeper.passOver(pool, forMs);
  }

  async release(
    outcome: LeaseOutcome,
    status: number | null,
    settlement?: Settlement,
    isSole = false,
    notes?: CallNotes,
  ): Promise<void> {
    const reported = [outcome, status, settlement, isSole, notes, this.#attachment] as const;
    await this.#keeper.release(this.#leaseId, ...reported);
  }

  async report(signal: UpstreamSignal, isRepeat: boolean): Promise<void> {
    await this.#keeper.report(this.#leaseId, signal, isRepeat);
  }

  [Symbol.dispose](): void {
    Promise.resolve(this.#keeper.detach(this.#leaseId, this.#attachment)).catch(() => {});
  }
}

/** The object that contains an unverified pool, which has none of its own and stores nothing. */
export interface VerificationHost {
  readonly name: string;
  /** Timers of the object, which all its pools share. */
  readonly timers: Timers;
  /** Slots of leases that an earlier process granted and that are held by id. */
  readonly held: number;
  /** Wraps the interface between the pool and the holders of its leases. */
  keeperFor(own: LeaseKeeper): LeaseKeeper;
  onVerified(): void;
  onEvent(): void;
}

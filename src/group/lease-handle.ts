import { RpcTarget } from 'cloudflare:workers';
import type { LeaseRpc, RenewAnswer } from '../contract/group-rpc.ts';
import type { LeaseId } from '../core/ids.ts';
import type { Outcome } from '../core/outcome.ts';
import type { UpstreamSignal } from '../core/signal.ts';
import type { Settlement } from '../core/usage.ts';

/** What a handle asks of its group's object. */
export interface LeaseKeeper {
  renew(leaseId: LeaseId, status: number | null): Promise<RenewAnswer>;
  report(leaseId: LeaseId, signal: UpstreamSignal, isRepeat: boolean): void;
  release(
    leaseId: LeaseId,
    outcome: Outcome,
    status: number | null,
    settlement: Settlement | undefined,
  ): void;
  confirm(leaseId: LeaseId): void;
  detach(leaseId: LeaseId, attachment: number): void;
}

/**
 * One answer's hold on a lease. The runtime disposes of it when the context of the Worker that got it
 * ends, for whatever reason, so a Worker that dies frees its slot at once.
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

  // oxlint-disable-next-line require-await -- as below
  async confirm(): Promise<void> {
    this.#keeper.confirm(this.#leaseId);
  }

  // oxlint-disable-next-line require-await -- the contract is a promise; a throw must become a rejection
  async release(outcome: Outcome, status: number | null, settlement?: Settlement): Promise<void> {
    this.#keeper.release(this.#leaseId, outcome, status, settlement);
  }

  // oxlint-disable-next-line require-await -- as above
  async report(signal: UpstreamSignal, isRepeat: boolean): Promise<void> {
    this.#keeper.report(this.#leaseId, signal, isRepeat);
  }

  [Symbol.dispose](): void {
    this.#keeper.detach(this.#leaseId, this.#attachment);
  }
}

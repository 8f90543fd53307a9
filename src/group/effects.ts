import type { AcquireAnswer } from '../contract/rpc/group-rpc.ts';
import type { Effect } from '../core/events.ts';
import type { ActiveLease } from '../core/state.ts';
import { IMPLICIT, type LeaseId } from '../core/words/ids.ts';
import type { ParkedAcquires } from './parked-acquires.ts';
import type { Batch } from './batch.ts';
import type { LeaseHandle } from './lease-handle.ts';
import type { Renewals } from './renewals.ts';

export type GrantedReply = Extract<AcquireAnswer, { kind: 'granted' }>;

interface EffectTargets {
  readonly batch: Batch;
  readonly acquires: ParkedAcquires;
  readonly renewals: Renewals;
  readonly loanRenewals: Renewals;
  /** Creates the handle on a lease that its answer carries. */
  readonly handle: (id: LeaseId, attachment: number) => LeaseHandle;
  /** Called when an answer with a lease leaves, after the write that it waited for. */
  readonly onLeaving: () => void;
  /** Returns the end of the time for which a holder may rely on its lease, when the answer leaves. */
  readonly countsUntil: (lease: ActiveLease) => number;
  /** Fields of a grant's answer in addition to its lease. */
  readonly grantFields: (
    lease: ActiveLease,
  ) => Pick<GrantedReply, 'configVersion' | 'wantsServed' | 'hasWaiters' | 'rates'>;
}

/** Performs the effects of the core: turns them into rows and answers. */
export class EffectRunner {
  readonly #targets: EffectTargets;

  constructor(targets: EffectTargets) {
    this.#targets = targets;
  }

  run(effects: readonly Effect[]): void {
    for (const effect of effects) this.#runOne(effect);
    this.#targets.batch.settle();
  }

  #runOne(effect: Effect): void {
    const { batch, acquires, renewals, loanRenewals: prefetchRenewals } = this.#targets;
    switch (effect.kind) {
      case 'write':
        return effect.isAhead ? batch.ahead() : batch.soon(true);
      case 'grant':
        return this.#grant(effect);
      case 'pending':
      case 'reject':
      case 'declined':
      case 'gone':
      case 'moved':
      case 'unread':
        return acquires.answer(effect);
      case 'recalled':
        return prefetchRenewals.answer(effect.loanId, 'revoking');
      case 'revoked':
        return renewals.answer(effect.leaseId, 'revoking');
      case 'ended':
        return renewals.answer(effect.leaseId, 'gone');
    }
  }

  #grant({
    ticketId: id,
    lease,
    isCovered,
    waitedFor,
    lent,
  }: Extract<Effect, { kind: 'grant' }>): void {
    const { batch, acquires, handle, onLeaving, countsUntil, grantFields } = this.#targets;
    const { id: leaseId, attachment, nested, heirOf, reserved, isById } = lease;
    const parked = acquires.take(id);
    const answer = (): void => {
      onLeaving();
      parked?.({
        kind: 'granted',
        lease: handle(leaseId, attachment),
        leaseId,
        attachment,
        ...(nested === null ? {} : { nested }),
        ...(heirOf.length === 0 ? {} : { heirOf }),
        ...(reserved === null ? {} : { reserved }),
        ...(isById ? { expiresAt: countsUntil(lease) } : {}),
        ...(waitedFor === undefined ? {} : { waitedFor }),
        ...(lent === undefined ? {} : { lent }),
        ...(lease.named === IMPLICIT ? {} : { member: lease.named }),
        ...grantFields(lease),
      });
    };
    batch.answer(answer, isCovered);
  }
}

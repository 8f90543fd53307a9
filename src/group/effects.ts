import type { AcquireAnswer } from '../contract/rpc/group-rpc.ts';
import type { Effect } from '../core/events.ts';
import type { ActiveLease, GroupState } from '../core/state.ts';
import { IMPLICIT, type LeaseId, type InstantMs } from '../core/words/ids.ts';
import { lostAt } from '../core/parts/bound.ts';
import { slotsHeld } from '../core/stats.ts';
import { confirmWrite, takeWrite } from '../core/writes.ts';
import type { Schedule } from '../runtime/async.ts';
import type { Observation } from './observe/observation.ts';
import type { ParkedAcquires, Renewals } from './parked.ts';
import type { Batch } from './batch.ts';
import type { LeaseHandle } from './lease-handle.ts';
import type { BoundStore } from './bound-store.ts';
import type { GroupStore } from './store.ts';

/** Carries out the effects of the core, and writes the rows that answers depend on. */

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
    const { id: leaseId, attachment, nested, heirOf, reserved, isById, grantedAt } = lease;
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
        ...(isById ? { expiresAt: countsUntil(lease), grantedAt } : {}),
        ...(waitedFor === undefined ? {} : { waitedFor }),
        ...(lent === undefined ? {} : { lent }),
        ...(lease.named === IMPLICIT ? {} : { member: lease.named }),
        ...grantFields(lease),
      });
    };
    batch.answer(answer, isCovered);
  }
}

interface RowWriterParts {
  readonly state: GroupState;
  readonly store: GroupStore;
  readonly bounds: BoundStore;
  readonly observation: Observation;
  readonly now: () => InstantMs;
  readonly after: Schedule;
  /** Resolves once all earlier writes are on disk. */
  readonly sync: () => Promise<void>;
  /** Called when a write is confirmed. */
  readonly onConfirmed: () => void;
  /** Called when the bound was written. */
  readonly onWritten: () => void;
  readonly abort: (reason: string) => void;
}

/** Writes the pending rows of turns in one transaction, and confirms the bound once it is on disk. */
export class RowWriter {
  readonly #parts: RowWriterParts;

  constructor(parts: RowWriterParts) {
    this.#parts = parts;
  }

  write(isBound: boolean): void {
    const { observation, now } = this.#parts;
    this.#tryTo(() => {
      if (isBound) this.#writeBound();
      observation.write(now());
    });
  }

  /** Writes what waits for a later write. */
  flush(): void {
    const { observation, now } = this.#parts;
    this.#tryTo(() => observation.flush(now()));
  }

  /** Creates the tables, and writes the pending rows. */
  open(): void {
    const { state, store } = this.#parts;
    this.#tryTo(() => {
      store.open();
      state.bound.isStored = true;
      this.#writeBound();
    });
  }

  /**
   * Ends an instance whose writes are not confirmed. An instance that was itself suspended receives the confirmation
   * only after this turn.
   */
  giveUpUnlessConfirmed(): void {
    const { state, now, after, abort } = this.#parts;
    after(0, () => {
      if (now() >= lostAt(state.bound)) abort('a write was not confirmed in time');
    });
  }

  #writeBound(): void {
    const { state, store, bounds, observation, now, sync, onConfirmed, onWritten } = this.#parts;
    // Without tables no granted slot needs a row, until one is held.
    if (!state.bound.isStored || (!store.isOpen && slotsHeld(state) === 0)) return;
    store.open();
    const at = now();
    const write = takeWrite(state, at);
    bounds.write(write, write.bound.mark === 0 ? observation.takeAtRest(at) : null);
    const confirmed = (): void => {
      confirmWrite(state, write.bound.seq);
      onConfirmed();
    };
    onWritten();
    // The platform ends the instance if a write fails.
    sync().then(confirmed, () => {});
  }

  /** Ends an instance that cannot write. It was replaced or is lost, and none of its state may be used. */
  #tryTo(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.#parts.abort(`a write failed: ${String(error)}`);
    }
  }
}

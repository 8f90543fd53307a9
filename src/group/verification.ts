import type { Env } from '../env.ts';
import type { GroupRpc, LeaseRpc, RenewAnswer } from '../contract/rpc/group-rpc.ts';
import { leaseId, ticketId, type LeaseId } from '../core/words/ids.ts';
import type { Timers } from '../runtime/timers.ts';
import { isForgettable, isInUse } from './idleness.ts';
import type { LeaseKeeper } from './lease-handle.ts';
import { Pool } from './pool.ts';
import { claimFrom } from './requests.ts';

/** Calls of `GroupRpc` that a pool takes while it is on trial. */
export type VerificationCalls = Pick<
  GroupRpc,
  'acquire' | 'resume' | 'renew' | 'cancel' | 'release' | 'report' | 'status' | 'reconfigure'
>;

/** Messages of a trial to the object that it is in. */
interface VerificationEvents {
  /** Called once, after the event that proved the pool: starts its hand-over. Resolves when that is done or has failed. */
  readonly onProved: () => Promise<void>;
  /** Nothing is left in it that anybody would miss. */
  readonly onIdle: () => void;
  /** Leases are held by their ids: their holders may live longer than this process. `slots`: those of all of them. */
  readonly onHeldById: (slots: number) => void;
}

/** The pool of a trial, and what an earlier process left of it. */
interface VerificationParts {
  /** The pool's name. */
  readonly name: string;
  readonly timers: Timers;
  /** Slots of leases that an earlier process granted and that are held by their ids. */
  readonly held: number;
}

interface VerificationLease {
  readonly lease: LeaseRpc;
  readonly attachment: number | undefined;
}

/**
 * A pool in memory, until its key has its first success. Then it is handed over to the pool's own object,
 * exactly: nothing is decided here from the moment on at which its leases are read, and nobody is sent there
 * before they count there. Who holds one of them notices nothing: what is still said to this object about it
 * is passed on.
 */
export class Verification {
  readonly #pool: Pool;
  readonly #rpc: VerificationCalls;
  #isVerified = false;
  #handedOver: Promise<void> = Promise.resolve();
  readonly #events: VerificationEvents;
  /** Calls that are under way in the pool. */
  #calls = 0;
  /** While the pool is being handed over. */
  #handing: Promise<unknown> | null = null;
  /** Once it is: the leases that were taken over, as its own object holds them, and which answer holds each here. */
  #taken: ReadonlyMap<LeaseId | undefined, VerificationLease> | null = null;

  constructor(
    ctx: DurableObjectState,
    env: Env,
    of: VerificationParts,
    events: VerificationEvents,
  ) {
    this.#events = events;
    this.#pool = new Pool(ctx, env, {
      ...of,
      keeperFor: (own) => this.#keeperFor(own),
      onVerified: () => this.#verify(),
      onEvent: () => this.#noteEvent(),
    });
    this.#rpc = trialCalls(this.#pool);
  }

  /** Its key had its success, and it is being handed over, or that is done. */
  get isProved(): boolean {
    return this.#isVerified;
  }

  /** Resolves when the current hand-over is done or has failed. */
  get handedOver(): Promise<void> {
    return this.#handedOver;
  }

  /** Its own object has taken it over. */
  get isHandedOver(): boolean {
    return this.#taken !== null;
  }

  /** Whether a call holds a slot or waits for one, or may. */
  get isInUse(): boolean {
    return this.#isBusy || isInUse(this.#pool.shell.state);
  }

  get #isBusy(): boolean {
    return this.#calls > 0 || this.#isVerified;
  }

  /** Lets the trial end if nothing of it is worth remembering. */
  settle(): void {
    const { shell } = this.#pool;
    if (!this.#isBusy && isForgettable(shell.state, shell.now())) this.#events.onIdle();
  }

  /** Calls the pool. Null: it has an object of its own by now. */
  async call<T>(work: (pool: VerificationCalls) => Promise<T>): Promise<T | null> {
    while (this.#handing !== null) await this.#handing;
    if (this.#taken !== null) return null;
    this.#calls += 1;
    try {
      return await work(this.#rpc);
    } finally {
      this.#calls -= 1;
      this.settle();
    }
  }

  /** Hands the pool over. A failure leaves everything as it was. */
  async handOver(own: GroupRpc): Promise<void> {
    const handed = this.#pool.handOver.begin();
    const { leases: held } = this.#pool.shell.state;
    const attachments = handed.leases.map(({ id }) => held.get(id)?.attachment ?? 0);
    const taking = own.takeOver(handed);
    this.#handing = taking.catch(() => {});
    try {
      const leases = await taking;
      this.#taken = new Map(
        leases.map((lease, index) => [
          handed.leases[index]?.id,
          { lease, attachment: attachments[index] },
        ]),
      );
      // Of those that were given back nobody lets go any more, and as long as one is held its pool stays loaded.
      for (const [index, { phase }] of handed.leases.entries()) {
        if (phase === 'cooling') leases[index]?.[Symbol.dispose]();
      }
      this.#pool.handOver.end();
    } finally {
      this.#handing = null;
    }
  }

  /** Goes on, because its own object could not be reached: the next success tries again. */
  goOn(): void {
    this.#isVerified = false;
    this.#pool.handOver.takeBack();
    this.settle();
  }

  #verify(): void {
    if (this.#isVerified) return;
    this.#isVerified = true;
    this.#handedOver = this.#events.onProved();
  }

  #noteEvent(): void {
    const { bound, leases, unclaimed: orphaned } = this.#pool.shell.state;
    if (bound.mayOutlive) {
      // Holders from an earlier process may live through the end of this one too.
      let slots = orphaned.slots;
      for (const lease of leases.values()) if (lease.isById) slots += lease.slots;
      if (slots > 0) this.#events.onHeldById(slots);
    }
    this.settle();
  }

  /** Passes on what holders say of leases that were taken over. */
  #keeperFor(own: LeaseKeeper): LeaseKeeper {
    return {
      // Its holder takes it up again, there.
      renew: (id, status) =>
        this.#where<Promise<RenewAnswer>>(
          id,
          () => own.renew(id, status),
          () => Promise.resolve('gone'),
        ),
      report: (id, signal, isRepeat) =>
        this.#where<Promise<void> | void>(
          id,
          () => own.report(id, signal, isRepeat),
          ({ lease }) => lease.report(signal, isRepeat),
        ),
      release: (id, outcome, status, settlement, isSole, notes, attachment) =>
        this.#where<Promise<void> | void>(
          id,
          () => own.release(id, outcome, status, settlement, isSole, notes, attachment),
          ({ lease }) => lease.release(outcome, status, settlement, isSole, notes),
        ),
      confirm: (id) =>
        this.#where<Promise<void> | void>(
          id,
          () => own.confirm(id),
          ({ lease }) => lease.confirm(),
        ),
      // A pool on trial has too few calls for any to be passed over.
      passOver() {},
      detach: (id, attachment) =>
        this.#where<Promise<void> | void>(
          id,
          () => own.detach(id, attachment),
          (taken) => {
            if (taken.attachment === attachment) taken.lease[Symbol.dispose]();
          },
        ),
    };
  }

  /** Acts on a lease where it is; in the same turn, unless it is on its way. */
  #where<T>(
    id: LeaseId,
    here: () => T,
    there: (taken: VerificationLease) => T,
  ): T | Promise<Awaited<T>> {
    if (this.#handing !== null) {
      return this.#handing.then(() => this.#where(id, here, there)) as Promise<Awaited<T>>;
    }
    const taken = this.#taken?.get(id);
    return taken === undefined ? here() : there(taken);
  }
}

function trialCalls({ acquires, byId, leases, view, link }: Pool): VerificationCalls {
  // oxlint-disable require-await -- as in `GroupObject`: a throw must become a rejection
  return {
    acquire: (request) => acquires.acquire(request),
    resume: (request) => acquires.resume(request),
    renew: (id, status, held) => byId.renew(leaseId(id), status, held),
    cancel: async (ticket) => acquires.cancel(ticketId(ticket)),
    release: async (id, outcome, status, settlement, held, notes) =>
      leases.releaseById(leaseId(id), outcome, status, settlement, held && claimFrom(held), notes),
    report: async (id, signal, isRepeat, held) =>
      leases.report(leaseId(id), signal, isRepeat, held && claimFrom(held)),
    status: async () => view.status(),
    reconfigure: async (pushed) => link.adopt(pushed),
  };
}

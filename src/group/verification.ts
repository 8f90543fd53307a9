import type { Env } from '../env.ts';
import type { GroupRpc, LeaseRpc, RenewAnswer } from '../contract/rpc/group-rpc.ts';
import { leaseId, ticketId, type LeaseId } from '../core/words/ids.ts';
import type { Timers } from '../runtime/async.ts';
import { LEASE_TTL_MS } from '../core/words/settings.ts';
import { isForgettable, isInUse } from './idleness.ts';
import type { LeaseKeeper } from './lease-handle.ts';
import { Pool } from './pool.ts';

/** Unverified pools in the object that they share: one of them, and what the object remembers of all. */

/** Calls of `GroupRpc` that an unverified pool accepts. */
export type VerificationCalls = Pick<
  GroupRpc,
  'acquire' | 'resume' | 'renew' | 'cancel' | 'release' | 'report' | 'status' | 'reconfigure'
>;

/** Callbacks from an unverified pool to the object that contains it. */
interface VerificationEvents {
  /**
   * Called once after the event that verified the pool, to start its hand-over. Resolves when that has succeeded or
   * failed.
   */
  readonly onProved: () => Promise<void>;
  /** Called when the pool has no state worth keeping. */
  readonly onIdle: () => void;
  /** Called when leases are held by id, whose holders may outlive this process. `slots` is their total. */
  readonly onHeldById: (slots: number) => void;
}

/** The pool, and what an earlier process left of it. */
interface VerificationParts {
  readonly name: string;
  readonly timers: Timers;
  /** Slots of leases that an earlier process granted and that are held by id. */
  readonly held: number;
}

interface VerificationLease {
  readonly lease: LeaseRpc;
  readonly attachment: number | undefined;
}

/**
 * A pool in memory until its key has its first success. Then it is handed over to its own object.
 *
 * The hand-over is exact: once its leases are read, nothing is decided here, and no call is redirected before the
 * leases count there. Holders notice nothing, because later messages about their leases are forwarded.
 */
export class Verification {
  readonly #pool: Pool;
  readonly #rpc: VerificationCalls;
  #isVerified = false;
  #handedOver: Promise<void> = Promise.resolve();
  readonly #events: VerificationEvents;
  #calls = 0;
  /** Pending while the pool is being handed over. */
  #handing: Promise<unknown> | null = null;
  /** Set after the hand-over: each lease as its own object holds it, and the attachment that holds it here. */
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

  /** Whether its key has succeeded, so that the hand-over is in progress or done. */
  get isProved(): boolean {
    return this.#isVerified;
  }

  /** Resolves when the current hand-over has succeeded or failed. */
  get handedOver(): Promise<void> {
    return this.#handedOver;
  }

  /** Whether its own object has taken it over. */
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

  /** Ends the pool here if it has no state worth keeping. */
  settle(): void {
    const { shell } = this.#pool;
    if (!this.#isBusy && isForgettable(shell.state, shell.now())) this.#events.onIdle();
  }

  /** Calls the pool. Returns null if it has its own object now. */
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

  /** Hands the pool over. A failure leaves everything unchanged. */
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
      // Released leases have no holder that would dispose of their handles, and a held handle keeps the pool's object
      // loaded.
      for (const [index, { phase }] of handed.leases.entries()) {
        if (phase === 'cooling') leases[index]?.[Symbol.dispose]();
      }
      this.#pool.handOver.end();
    } finally {
      this.#handing = null;
    }
  }

  /** Continues here, because its own object was unreachable. The next success retries the hand-over. */
  continueHere(): void {
    this.#isVerified = false;
    this.#pool.handOver.cancel();
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
      // Holders from an earlier process may outlive this one too.
      let slots = orphaned.slots;
      for (const lease of leases.values()) if (lease.isById) slots += lease.slots;
      if (slots > 0) this.#events.onHeldById(slots);
    }
    this.settle();
  }

  /** Forwards messages of holders about leases that were taken over. */
  #keeperFor(own: LeaseKeeper): LeaseKeeper {
    return {
      // Its holder resumes it there.
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
      // An unverified pool has too few calls for any to be passed over.
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

  /** Acts on a lease where it is, in the same turn unless it is being handed over. */
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
      leases.releaseById(leaseId(id), outcome, status, settlement, held, notes),
    report: async (id, signal, isRepeat, held) =>
      leases.report(leaseId(id), signal, isRepeat, held),
    status: async () => view.status(),
    reconfigure: async (pushed) => link.take(pushed),
  };
}

/**
 * Maximum stored partitions that share a pool, because callers can send any number of values. The oldest are deleted.
 */
export const SHARING_MAX = 10_000;

/** The verified pools. See `design/storage.md`. */
export class VerifiedPools {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec('CREATE TABLE IF NOT EXISTS proved (pool TEXT PRIMARY KEY) WITHOUT ROWID');
    sql.exec(
      'CREATE TABLE IF NOT EXISTS proved_sharing (number INTEGER PRIMARY KEY AUTOINCREMENT, pool TEXT NOT NULL UNIQUE)',
    );
  }

  has(pool: string): boolean {
    const query =
      'SELECT 1 FROM proved WHERE pool = ?1 UNION ALL SELECT 1 FROM proved_sharing WHERE pool = ?1';
    return this.#sql.exec(query, pool).toArray().length > 0;
  }

  add(pool: string): void {
    this.#sql.exec('INSERT OR IGNORE INTO proved (pool) VALUES (?)', pool);
  }

  /** Adds a partition whose calls use a shared pool. A deleted one starts as unverified again. */
  addSharing(pool: string): void {
    this.#sql.exec('INSERT OR IGNORE INTO proved_sharing (pool) VALUES (?)', pool);
    this.#sql.exec(
      'DELETE FROM proved_sharing WHERE number <= (SELECT MAX(number) FROM proved_sharing) - ?',
      SHARING_MAX,
    );
  }
}

/** How much longer than its lease a row counts, so that not every renewal writes one. */
const SLACK_MS = 15_000;

interface HeldUntil {
  readonly slots: number;
  readonly until: number;
}

/**
 * Stores slots of unverified pools whose holders may outlive the process, because they hold their leases by id. There
 * is at most one row per such lease. See `design/storage.md`.
 */
export class HeldById {
  readonly #sql: SqlStorage;
  readonly #held = new Map<string, HeldUntil>();

  constructor(sql: SqlStorage, now: number) {
    this.#sql = sql;
    sql.exec(
      'CREATE TABLE IF NOT EXISTS held_by_id (pool TEXT PRIMARY KEY, slots INTEGER NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID',
    );
    sql.exec('DELETE FROM held_by_id WHERE until <= ?', now);
    const rows = sql.exec<{ pool: string; slots: number; until: number }>(
      'SELECT * FROM held_by_id',
    );
    for (const { pool, slots, until } of rows) this.#held.set(pool, { slots, until });
  }

  /** Returns how many slots an earlier process may have granted in a pool. */
  slotsOf(pool: string, now: number): number {
    const held = this.#held.get(pool);
    return held === undefined || held.until <= now ? 0 : held.slots;
  }

  /** Stores how many slots are held by id, before any answer is sent. */
  note(pool: string, slots: number, now: number): void {
    const known = this.#held.get(pool);
    const isKnown = known !== undefined && known.slots >= slots;
    if (isKnown && known.until >= now + LEASE_TTL_MS) return;
    const until = Math.ceil(now + LEASE_TTL_MS + SLACK_MS);
    this.#held.set(pool, { slots, until });
    this.#sql.exec(
      'INSERT OR REPLACE INTO held_by_id (pool, slots, until) VALUES (?, ?, ?)',
      pool,
      slots,
      until,
    );
  }

  /** Deletes a pool that holds no such slots any more, or that has its own object. */
  forget(pool: string): void {
    if (this.#held.delete(pool)) this.#sql.exec('DELETE FROM held_by_id WHERE pool = ?', pool);
  }
}

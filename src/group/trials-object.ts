import { steadyClock, Timers, within } from '../runtime/async.ts';
import { DurableObject } from 'cloudflare:workers';
import type { ListedPool } from '../contract/rpc/directory-rpc.ts';
import { directoryOf, type Env } from '../env.ts';
import type {
  AcquireAnswer,
  AcquireRequest,
  GroupDefinition,
  GroupRpc,
  RenewByIdAnswer,
  ResumeAnswer,
  ResumeRequest,
} from '../contract/rpc/group-rpc.ts';
import { logEvent } from '../runtime/log.ts';
import { partitionOfCalls, poolOf, type PoolLocation } from '../routing/pool.ts';
import { poolName } from '../contract/pool-name.ts';
import type { PoolStatus } from '../contract/status.ts';
import type { VerifiedPool, VerificationRpc } from '../contract/rpc/lease-objects-rpc.ts';
import type { CallNotes, LeaseOutcome } from '../core/words/outcome.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import type { Settlement } from '../core/words/ticket.ts';
import { HeldById, VerifiedPools, Verification, type VerificationCalls } from './verification.ts';

/** Maximum pools. Beyond it, pools that only remember a pause or a used part of a limit are dropped. */
export const VERIFICATIONS_MAX = 2_000;
const FORGET_EVERY_MS = 1_000;

/** Interval at which pools without state worth keeping are dropped. */
const SETTLE_EVERY_MS = 5_000;

/** Maximum age of an unverified pool's definition, because the directory does not notify such pools. */
const READ_MS_MAX = 4_000;
const DIRECTORY_TIMEOUT_MS = 1_000;

/** A read of a group's definition: when it started, and its result, or null if there is none yet. */
interface LastRead {
  readonly at: number;
  readonly definition: GroupDefinition | null;
}

const VERIFIED: VerifiedPool = { kind: 'proved' };

/**
 * All unverified pools in one object. They are in memory, and are dropped when they are not in use. Only the names of
 * verified pools and the number of slots whose holders may outlive the process are stored.
 *
 * The object exists only if Headgate is self-hosted, where the runtime opens a file for every object that is called.
 */
export class TrialsObject extends DurableObject<Env> implements VerificationRpc {
  readonly #verified: VerifiedPools;
  readonly #heldById: HeldById;
  readonly #verifications = new Map<string, Verification>();
  readonly #timers = new Timers();
  #forgottenAt = 0;
  /** Allows the runtime to unload the object, which stays in memory while it has pools. null if there are none. */
  #mayUnload: (() => void) | null = null;
  /** The directory's last answer about each group, so that not every pool asks. */
  readonly #read = new Map<string, LastRead>();
  readonly #reading = new Map<string, Promise<LastRead>>();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#verified = new VerifiedPools(ctx.storage.sql);
    this.#heldById = new HeldById(ctx.storage.sql, this.#timers.clock.now());
  }

  async acquire(request: AcquireRequest): Promise<AcquireAnswer | VerifiedPool> {
    const verification = this.#verificationOf(request);
    const answer = await this.#acquireIn(verification, request);
    if (answer.kind !== 'moved' || verification?.isProved !== true) return answer;
    // The hand-over may be the cause. It waits for other objects, so no caller may retry in a loop until it has ended.
    await verification.handedOver;
    // If it failed, this pool may have been dropped since, and another one of the same name created.
    return this.#acquireIn(this.#verificationOf(request), request);
  }

  async #acquireIn(
    verification: Verification | null,
    request: AcquireRequest,
  ): Promise<AcquireAnswer | VerifiedPool> {
    const answer = await verification?.call(async (pool) => {
      await this.#bringUpToDate(pool, request);
      return pool.acquire(request);
    });
    return answer ?? VERIFIED;
  }

  async resume(request: ResumeRequest): Promise<ResumeAnswer | VerifiedPool> {
    const answer = await this.#verificationOf(request)?.call((pool) => pool.resume(request));
    return answer ?? VERIFIED;
  }

  async renew(
    leaseId: string,
    status: number | null,
    held: ResumeRequest,
  ): Promise<RenewByIdAnswer | VerifiedPool> {
    const answer = await this.#verificationOf(held)?.call((pool) =>
      pool.renew(leaseId, status, held),
    );
    return answer ?? VERIFIED;
  }

  async cancel(of: ListedPool, ticketId: string): Promise<void> {
    await this.#call(of, (pool) => pool.cancel(ticketId));
  }

  async release(
    of: ListedPool,
    leaseId: string,
    outcome: LeaseOutcome,
    status: number | null,
    settlement?: Settlement,
    held?: ResumeRequest,
    notes?: CallNotes,
  ): Promise<void> {
    await this.#call(of, (pool) => pool.release(leaseId, outcome, status, settlement, held, notes));
  }

  async report(
    of: ListedPool,
    leaseId: string,
    signal: UpstreamSignal,
    isRepeat: boolean,
    held?: ResumeRequest,
  ): Promise<void> {
    await this.#call(of, (pool) => pool.report(leaseId, signal, isRepeat, held));
  }

  status(of: ListedPool): Promise<PoolStatus> {
    return this.#call(of, (pool) => pool.status());
  }

  // oxlint-disable-next-line require-await -- the contract is a promise; a throw must become a rejection
  async isVerified({ group, partition }: ListedPool): Promise<boolean> {
    return this.#verified.has(poolName(group, partition));
  }

  /** Calls a pool here or in its own object. */
  async #call<T>(of: ListedPool, work: (pool: VerificationCalls) => Promise<T>): Promise<T> {
    const verification = this.#verificationOf(of);
    const here =
      verification === null
        ? null
        : await verification.call(async (pool) => [await work(pool)] as const);
    if (here !== null) return here[0];
    const { own } = await this.#ownObjectOf(of);
    return work(own);
  }

  /** Returns the unverified pool of a name, and creates it if needed. Returns null if the pool is verified. */
  #verificationOf(of: ListedPool): Verification | null {
    const name = poolName(of.group, of.partition);
    const known = this.#verifications.get(name);
    if (known !== undefined) return known;
    if (this.#verified.has(name)) return null;
    if (this.#verifications.size >= VERIFICATIONS_MAX) this.#forgetUnused();
    const { clock } = this.#timers;
    const held = this.#heldById.slotsOf(name, clock.now());
    const begins = { name, timers: this.#timers, held };
    const verification: Verification = new Verification(this.ctx, this.env, begins, {
      onProved: () => {
        const handedOver = this.#handOver(of, verification);
        this.ctx.waitUntil(handedOver);
        return handedOver;
      },
      onIdle: () => this.#forget(name, verification),
      onHeldById: (slots) => this.#heldById.note(name, slots, clock.now()),
    });
    this.#verifications.set(name, verification);
    this.#stayAwake();
    return verification;
  }

  #forget(name: string, verification: Verification): void {
    // A timer of a dropped pool must not end the next one of the same name.
    if (this.#verifications.get(name) !== verification) return;
    this.#verifications.delete(name);
    this.#heldById.forget(name);
    if (this.#verifications.size > 0) return;
    this.#mayUnload?.();
    this.#mayUnload = null;
  }

  /** Keeps the object in memory while it has pools. The runtime unloads an object without pending work after 10 s. */
  #stayAwake(): void {
    if (this.#mayUnload !== null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ctx.waitUntil(promise);
    let cancel = (): void => {};
    const settleLater = (): void => {
      cancel = this.#timers.after(SETTLE_EVERY_MS, () => {
        for (const verification of this.#verifications.values()) verification.settle();
        if (this.#verifications.size > 0) settleLater();
      });
    };
    settleLater();
    this.#mayUnload = () => {
      cancel();
      resolve();
    };
  }

  async #handOver(of: ListedPool, verification: Verification): Promise<void> {
    const name = poolName(of.group, of.partition);
    try {
      const { own, partition } = await this.#ownObjectOf(of);
      await verification.handOver(own);
      // A shared partition must not start again as unverified beside its pool's object.
      this.#verified.add(poolName(of.group, partition));
      if (partition !== of.partition) this.#verified.addSharing(name);
      this.#forget(name, verification);
    } catch (error) {
      // A pool that was handed over before the failure stays, and reports that to its callers. The disk may be full.
      if (!verification.isHandedOver) verification.continueHere();
      logEvent('hand_over_failed', { group: of.group, error: String(error) });
    }
  }

  #forgetUnused(): void {
    const now = this.#timers.clock.now();
    if (now - this.#forgottenAt < FORGET_EVERY_MS) return;
    this.#forgottenAt = now;
    let pools = 0;
    for (const [name, verification] of this.#verifications) {
      if (verification.isInUse) continue;
      this.#forget(name, verification);
      pools += 1;
    }
    // Shows an operator that callers make up values, or that a group is partitioned by a value that changes with each
    // call.
    if (pools > 0) logEvent('trials_forgotten', { pools });
  }

  /** Returns the object of a verified pool, at the location of its group. */
  async #ownObjectOf(
    of: ListedPool,
  ): Promise<{ readonly own: GroupRpc; readonly partition: string | null }> {
    // The group may be full. Workers must find the pool there too.
    const partition = await partitionOfCalls(this.env, of);
    const { definition } = this.#read.get(of.group) ?? (await this.#readOnce(of.group));
    const config = definition?.config ?? null;
    const place = config === null ? null : (JSON.parse(config) as PoolLocation);
    return { own: poolOf(this.env, of.group, partition, place), partition };
  }

  async #bringUpToDate(
    pool: VerificationCalls,
    { group, sinceVersion }: AcquireRequest,
  ): Promise<void> {
    const known = this.#read.get(group);
    const isBehind = (known?.definition?.version ?? -1) < sinceVersion;
    const isOld = known === undefined || steadyClock.now() - known.at > READ_MS_MAX;
    const { definition } = await (known === undefined || isBehind || isOld
      ? this.#readOnce(group)
      : known);
    if (definition !== null) await pool.reconfigure(definition);
  }

  /**
   * Reads a group's definition once for all pending calls. If the directory is unreachable, the last definition is
   * better than a rejection.
   */
  #readOnce(group: string): Promise<LastRead> {
    let reading = this.#reading.get(group);
    if (reading === undefined) {
      const at = steadyClock.now();
      const answer = within(
        DIRECTORY_TIMEOUT_MS,
        directoryOf(this.env).definition(group),
        this.#timers.after,
      );
      reading = answer
        .catch(() => this.#read.get(group)?.definition ?? null)
        .then((definition) => {
          const read = { at, definition };
          this.#read.set(group, read);
          this.#reading.delete(group);
          return read;
        });
      this.#reading.set(group, reading);
    }
    return reading;
  }
}

import type {
  AcquireRequest,
  LeaseRpc,
  PoolRef,
  RenewAnswer,
  ResumeAnswer,
  ResumeRequest,
} from '../../contract/rpc/group-rpc.ts';
import type { RunLease } from '../../contract/rpc/lease-objects-rpc.ts';
import type { OrphanedPrefetchedSlot } from '../../core/orphaned.ts';
import type { CallNotes, LeaseOutcome } from '../../core/words/outcome.ts';
import type { RefusalKind, UpstreamSignal } from '../../core/words/signal.ts';
import type { Settlement } from '../../core/words/ticket.ts';
import { LEASE_TTL_MS, RENEW_EVERY_MS } from '../../core/words/settings.ts';
import { steadyClock, within, pause, type Schedule, type Background } from '../../runtime/async.ts';
import {
  checkGone,
  claimNow,
  leaseOf,
  releaseById,
  sendLast,
  type HeldLease,
} from '../../routing/held-lease.ts';
import type { CallEnd } from '../observe/analytics.ts';
import { returnSlot, type Full } from './held-slots.ts';
import type { AcquireEnd, GrantedAnswer } from './open-calls.ts';
import type { PoolSource } from './pools.ts';
import { releasePausesMs, resumeMs, untilAnswered } from './retry-delays.ts';

/** When a running call sends its first renewal. Most calls end before, and a renewal is a round trip. */
const FIRST_RENEWAL_MS = 1_000;

/** How long a parked renewal may take before it counts as lost with the instance that held it. */
const RENEWAL_LOST_MS = RENEW_EVERY_MS + 5_000;

/** Minimum time for which a renewal is parked. After two earlier answers in a row the holder pauses. */
const RENEW_AGAIN_MS = 1_000;

/** How long a release, or an attempt to resume, may take before it counts as lost. */
const ANSWER_LOST_MS = 3_000;

export type LeaseEnd = Pick<CallEnd, 'outcome' | 'status' | 'reason' | 'used'>;

/** The answer that holds a lease. Without a stub it is a prefetched slot, which no answer holds yet. */
type HeldBy = Omit<GrantedAnswer, 'kind' | 'lease' | 'configVersion'> & {
  readonly lease: LeaseRpc | null;
};

/** What the acquire call asked for. */
export type AskedLease = PoolRef & Pick<AcquireRequest, 'ticket'>;

/** When a lease began, how long it lasts without a renewal, and a callback for when its group knows it, or its end. */
interface HeldSince {
  /** The prefetched slot that becomes the lease. Absent if it was granted. */
  readonly prefetched?: OrphanedPrefetchedSlot;
  readonly onKnown: () => void;
  readonly grantedAt: number;
  readonly renewedAt: number;
  readonly ttlMs: number;
}

export type CallLease = Pick<
  LeaseHolder,
  | 'leaseId'
  | 'wantsServed'
  | 'hasWaiters'
  | 'reportAnswer'
  | 'report'
  | 'keep'
  | 'confirm'
  | 'giveBack'
  | 'release'
  | 'forRun'
  | 'letGo'
>;

/**
 * The Worker's side of a lease. Renews it while the call runs, resumes it after the object was reset, and releases it
 * exactly once.
 */
export class LeaseHolder {
  #pool: PoolSource;
  #asked: AskedLease;
  readonly #ctx: Background;
  readonly #after: Schedule;
  #granted: HeldBy;
  readonly #prefetched: OrphanedPrefetchedSlot | undefined;
  readonly #grantedAt: number;
  /** When the last acknowledged renewal was sent, or when the lease was granted. */
  #renewedAt: number;
  #ttlMs: number;
  readonly #onKnown: () => void;
  #status: number | null = null;
  #notes: CallNotes | undefined;
  #isReleased = false;
  /** No message has named the lease by its id, so only the instance that granted it can know it. */
  #isSole: boolean;
  #isEndReported = false;
  #reported: Promise<unknown> | null = null;
  #moving: Promise<unknown> | null = null;
  #callOffRenewal: (() => void) | null = null;
  #onRevoked: (() => void) | null = null;
  #isRenewing = false;
  #isRevoked = false;
  #refusal: RefusalKind | null = null;
  readonly #onEnd: ((end: LeaseEnd) => void) | null;
  /** Whether the group requests a report at the headers that the upstream accepted the call. */
  readonly wantsServed: boolean;
  /** Whether other calls were queued for its slot at the grant. */
  readonly hasWaiters: boolean;

  constructor(
    pool: PoolSource,
    asked: AskedLease,
    granted: HeldBy,
    ctx: Background,
    after: Schedule,
    onEnd: ((end: LeaseEnd) => void) | null = null,
    { grantedAt, renewedAt, ttlMs, onKnown, prefetched }: HeldSince = heldFromNow(),
  ) {
    this.#grantedAt = grantedAt;
    this.#renewedAt = renewedAt;
    this.#ttlMs = ttlMs;
    this.#onKnown = onKnown;
    this.#prefetched = prefetched;
    this.#onEnd = onEnd;
    this.#pool = pool;
    this.#asked = asked;
    // Other requests may have named a lease that is held by its id.
    this.#isSole = asked.ticket.isById !== true;
    this.#granted = granted;
    this.wantsServed = granted.wantsServed ?? false;
    this.hasWaiters = granted.hasWaiters ?? false;
    this.#ctx = ctx;
    this.#after = after;
  }

  get leaseId(): string {
    return this.#granted.leaseId;
  }

  /**
   * Notes the upstream's status and other facts for the next renewal or the release. Later notes are added to earlier
   * ones.
   */
  reportAnswer(status: number, notes?: CallNotes): void {
    this.#status = status;
    if (notes !== undefined) this.#notes = { ...this.#notes, ...notes };
  }

  /**
   * Reports an upstream's signal to the group. It stays valid if the caller leaves, so the work is kept alive beyond
   * the call. A lost report costs one more refusal at most.
   */
  report(signal: UpstreamSignal, isRepeat: boolean): void {
    if (signal.kind !== 'served') this.#refusal = signal.kind;
    const byId = (): Promise<void> =>
      within(ANSWER_LOST_MS, this.#reportById(signal, isRepeat), this.#after);
    const { lease } = this.#granted;
    const first =
      lease === null ? byId() : within(ANSWER_LOST_MS, lease.report(signal, isRepeat), this.#after);
    const reported = first.catch(byId).catch(() => {});
    this.#reported = Promise.all([this.#reported, reported]);
    this.#ctx.waitUntil(reported);
  }

  /**
   * Renews the lease until its release. The first renewal is due after `firstMs`, unless there was one. A revocation is
   * the answer to a renewal, and `onRevoked` then has to abort the call and release the lease. A call that held the
   * lease while it waited in another group calls this again once it runs. There is still one loop, because each of two
   * would answer the other's parked renewal immediately.
   */
  keep(onRevoked: () => void, firstMs = FIRST_RENEWAL_MS): void {
    this.#onRevoked = onRevoked;
    if (this.#isRevoked) return onRevoked();
    if (this.#isRenewing) return;
    this.#callOffRenewal?.();
    this.#callOffRenewal = this.#after(this.#granted.lease === null ? 0 : firstMs, () => {
      this.#isRenewing = true;
      this.#ctx.waitUntil(this.#renewLoop());
    });
  }

  /** Processes answers that were still in transit when the first grant arrived. */
  async adoptLate(late: readonly Promise<AcquireEnd>[]): Promise<void> {
    await Promise.all(
      late.map(async (one) => {
        const end = await one;
        if (end.kind !== 'granted' || !this.#adopt(end)) return;
        // The instance that now holds the lease assumes that the call runs at this member.
        const isElsewhere = end.member !== this.#granted.member;
        if (isElsewhere && (await this.#resume()) === 'gone') this.#revoke();
      }),
    );
  }

  /** Reports that the call has its slots in all groups, so this one no longer counts as held by a queued call. */
  async confirm(): Promise<void> {
    try {
      await within(ANSWER_LOST_MS, Promise.resolve(this.#granted.lease?.confirm()), this.#after);
    } catch {
      // The group then counts it as held by a queued call until it ends.
    }
  }

  /** Releases the slot unused, because the pool `full` of the call is full. null if there is no such pool. */
  giveBack(full: Full | null): Promise<void> {
    return returnSlot(this.#granted.lease, full, () => this.release('unused'));
  }

  /**
   * Moves the lease to another pool, which counts it even above its limit. If that pool cannot be reached, the lease
   * stays in this one.
   */
  moveTo(pool: PoolSource, to: PoolRef, tenant: string): void {
    if (this.#isReleased) return;
    const { ticket } = this.#asked;
    const holder = { ...ticket.holder, tenant };
    this.#moving = this.#move(pool, { ...to, ticket: { ...ticket, holder } }).catch(() => {});
    this.#ctx.waitUntil(this.#moving);
  }

  /** The lease for its next holder, which will hold it by its id. null if there is none to hold. */
  async forRun(): Promise<Pick<RunLease, 'lease' | 'heldMs' | 'hasLapsed'> | null> {
    if (this.#moving !== null) await this.#moving;
    // A prefetched slot becomes a lease first.
    if (this.#granted.lease === null && (await this.#resume()) === 'gone') return null;
    if (this.#isReleased || this.#isRevoked) return null;
    this.#isSole = false;
    const { heldMs, hasLapsed } = this.#claim;
    const { lease } = this.#held;
    const holder = { ...lease.holder, kind: 'run' as const };
    return { lease: { ...lease, holder, isById: true }, heldMs, hasLapsed };
  }

  /** Leaves the lease to the holder that holds it by its id. */
  letGo(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#isEndReported = true;
    this.#callOffRenewal?.();
    this.#granted.lease?.[Symbol.dispose]();
    this.#onKnown();
    this.#onEnd?.({ outcome: 'success', status: this.#status, reason: null, used: null });
  }

  /** Releases the slot. Later calls have no effect. */
  async release(outcome: LeaseOutcome, settlement?: Settlement): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#callOffRenewal?.();
    // The report concerns this lease, so the group must receive it before the lease ends.
    if (this.#reported !== null) await this.#reported;
    if (this.#moving !== null) await this.#moving;
    const { lease } = this.#granted;
    this.#isEndReported = true;
    try {
      if (lease === null) return await this.#releaseById(outcome, settlement);
      const released = lease.release(
        outcome,
        this.#status,
        settlement,
        this.#isSole,
        ...this.#notesToSend(),
      );
      await within(ANSWER_LOST_MS, released, this.#after);
    } catch {
      // The object may have been reset, and errors after a reset do not indicate that.
      await this.#releaseById(outcome, settlement);
    } finally {
      lease?.[Symbol.dispose]();
      this.#onKnown();
      const used = settlement ?? null;
      this.#onEnd?.({ outcome, status: this.#status, reason: this.#refusal, used });
    }
  }

  #notesToSend(): [notes?: CallNotes] {
    return this.#notes === undefined ? [] : [this.#notes];
  }

  async #move(pool: PoolSource, asked: AskedLease): Promise<void> {
    const sentAt = steadyClock.now();
    const lease = { ...leaseOf(asked, this.#granted), attachment: null };
    // This slot is none of those that an earlier instance there may have granted.
    const resuming = pool().resume({ ...claimNow({ ...this.#held, lease }), hasLapsed: true });
    let taken: ResumeAnswer;
    try {
      taken = await within(ANSWER_LOST_MS, resuming, this.#after);
    } catch (error) {
      resuming.then(disposeOf).catch(() => {});
      throw error;
    }
    if (taken.kind !== 'granted') return;
    const before = this.#granted.lease;
    this.#pool = pool;
    this.#asked = asked;
    this.#holdBy(taken);
    this.#renewedAt = sentAt;
    this.#ttlMs = LEASE_TTL_MS;
    // The release reports nothing about the call. The other pool will receive that.
    await within(ANSWER_LOST_MS, Promise.resolve(before?.release('unused', null)), this.#after);
    before?.[Symbol.dispose]();
  }

  /** Of two answers with the lease, the one with the larger attachment holds it. Returns whether it is this one. */
  #adopt(granted: GrantedAnswer): boolean {
    if (this.#isReleased || granted.attachment < this.#granted.attachment) {
      granted.lease[Symbol.dispose]();
      return false;
    }
    this.#granted.lease?.[Symbol.dispose]();
    this.#holdBy(granted);
    this.#ttlMs = LEASE_TTL_MS;
    this.#onKnown();
    return true;
  }

  /** Holds the lease by a newer answer. Its id and its member stay those of the first one. */
  #holdBy(granted: HeldBy): void {
    const { leaseId, member } = this.#granted;
    const { member: _, ...rest } = granted;
    this.#granted = { ...rest, leaseId, ...(member !== undefined && { member }) };
  }

  async #renewLoop(): Promise<void> {
    for (let early = 0; !this.#isReleased;) {
      const sentAt = steadyClock.now();
      const answer = await this.#renew();
      if (this.#isReleased) return;
      if (answer === 'ok') {
        // Another renewal of the lease supersedes this one. The two must not supersede each other without a pause.
        early = steadyClock.now() - sentAt < RENEW_AGAIN_MS ? early + 1 : 0;
        if (early > 1) await pause(RENEW_AGAIN_MS, this.#after);
        continue;
      }
      if (answer === 'revoking') return this.#revoke();
      if ((await this.#resume()) === 'gone') return this.#revoke();
    }
  }

  #revoke(): void {
    this.#isRevoked = true;
    this.#onRevoked?.();
  }

  async #renew(): Promise<RenewAnswer> {
    const { lease } = this.#granted;
    if (lease === null) return 'gone';
    const sentAt = steadyClock.now();
    try {
      const answer = await within(RENEWAL_LOST_MS, lease.renew(this.#status), this.#after);
      if (answer === 'ok') this.#renewedAt = sentAt;
      return answer;
    } catch {
      return 'gone';
    }
  }

  /** Retries while the call runs. Without a resumed lease its slots are given up although its stream continues. */
  async #resume(): Promise<'resumed' | 'gone'> {
    await pause(resumeMs(), this.#after);
    // A late answer is adopted too.
    const resume = (): Promise<'resumed' | 'gone'> => this.#resumeOnce();
    const isNeeded = (): boolean => !this.#isReleased;
    return (await untilAnswered(resume, ANSWER_LOST_MS, isNeeded, this.#after)) ?? 'resumed';
  }

  async #resumeOnce(): Promise<'resumed' | 'gone'> {
    const sentAt = steadyClock.now();
    this.#isSole = false;
    const answer = await this.#pool().resume(this.#claim);
    if (answer.kind === 'gone') {
      checkGone(answer, this.#granted);
      return 'gone';
    }
    if (this.#adopt(answer)) this.#renewedAt = sentAt;
    return 'resumed';
  }

  /** The lease with its times. */
  get #held(): HeldLease {
    // An instance that resumed the lease above the limit has settled its reservation, and reports none.
    const lease = leaseOf(this.#asked, this.#granted);
    return { lease, grantedAt: this.#grantedAt, expiresAt: this.#renewedAt + this.#ttlMs };
  }

  /** The lease as described to an instance that may not know it. */
  get #claim(): ResumeRequest {
    return {
      ...claimNow(this.#held),
      ...(this.#prefetched !== undefined && { lent: this.#prefetched }),
    };
  }

  /** Reports by the lease's id, but never after its end, because another instance would then count it as held. */
  async #reportById(signal: UpstreamSignal, isRepeat: boolean): Promise<void> {
    if (this.#isEndReported) return;
    this.#isSole = false;
    return this.#pool().report(this.leaseId, signal, isRepeat, this.#claim);
  }

  /** Attempts the release immediately, and then spread over ten seconds, because many others have failed as well. */
  #releaseById(outcome: LeaseOutcome, settlement?: Settlement): Promise<void> {
    const end = { outcome, status: this.#status, settlement, notes: this.#notes };
    const release = (): Promise<void> => releaseById(this.#pool(), this.#claim, end);
    return sendLast(release, ANSWER_LOST_MS, releasePausesMs(), this.#after);
  }
}

function disposeOf(answer: ResumeAnswer): void {
  if (answer.kind === 'granted') answer.lease[Symbol.dispose]();
}

function heldFromNow(): HeldSince {
  const now = steadyClock.now();
  return { grantedAt: now, renewedAt: now, ttlMs: LEASE_TTL_MS, onKnown: () => {} };
}

import type { PrefetchedShare } from '../../core/parts/prefetches.ts';
import { isolateConfig } from '../../config/isolate-config.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import { pause, within, steadyClock, type Background, type Schedule } from '../../runtime/async.ts';
import type { PrefetchReport, PrefetchRpc, RenewAnswer } from '../../contract/rpc/group-rpc.ts';
import { PREFETCH_RENEW_EVERY_MS, PREFETCH_TTL_MS } from '../../core/words/settings.ts';
import { sendLast } from '../../routing/held-lease.ts';
import type { CallNotes, LeaseOutcome } from '../../core/words/outcome.ts';
import type { UpstreamSignal } from '../../core/words/signal.ts';
import type { Settlement } from '../../core/words/ticket.ts';
import { LocalPrefetch, type LocalSlot, type PrefetchedCall } from './local-prefetch.ts';
import type { PoolSource } from './pools.ts';
import { isOverload, releasePausesMs, resumeRetryMs } from './retry-delays.ts';
import { LeaseHolder, type AskedLease, type CallLease, type LeaseEnd } from './lease-holder.ts';

/** The prefetched slots of this isolate: renewing, using and reporting them. */

/** Maximum pools whose prefetched slots this isolate uses at the same time. */
const PREFETCHES_MAX = 1_000;

/**
 * The last prefetch of each pool, on which calls of this isolate start. It stays after its end, to recognize late
 * answers.
 */
const prefetches = new Map<string, LocalPrefetch>();

export interface PrefetchContext {
  readonly name: string;
  readonly pool: PoolSource;
  readonly ctx: Background;
  readonly after: Schedule;
}

/** Takes a prefetched slot of a pool for a call that was routed by `table`. null if the call has to ask the pool. */
export function takePrefetchedSlot(
  access: PrefetchContext,
  table: RoutingTable,
): { readonly prefetch: LocalPrefetch; readonly slot: LocalSlot } | null {
  const prefetch = prefetches.get(access.name);
  if (prefetch === undefined || prefetch.isOver || prefetch.isEmpty) return null;
  if (prefetch.configVersion !== table.snapshot.version || isolateConfig.mayBeOld(table)) {
    return null;
  }
  const slot = prefetch.take();
  seeToKeeper(prefetch, access);
  return slot === null ? null : { prefetch, slot };
}

/** Adds slots that a pool has prefetched to this isolate. `askedAt` is when the answered request was sent. */
export function takeInPrefetched(
  access: PrefetchContext,
  prefetched: PrefetchedShare,
  configVersion: number,
  askedAt: number,
): void {
  const last = prefetches.get(access.name);
  const isSame = last?.id === prefetched.loan;
  const prefetch = isSame ? last : new LocalPrefetch(prefetched.loan, configVersion, askedAt);
  if (last?.comesAfter(prefetched) === true || (last === undefined && !hasRoom())) {
    const { slots, attachment } = prefetched;
    const unused = slots.map((slot) => ({ slot, attachment }));
    return access.ctx.waitUntil(giveBack(prefetch, unused, access.pool, access.after));
  }
  if (!isSame) prefetches.set(access.name, prefetch);
  prefetch.configVersion = Math.max(prefetch.configVersion, configVersion);
  prefetch.add(prefetched);
  seeToKeeper(prefetch, access);
}

/** Whether there is room for the slots of another pool, once prefetches without calls are dropped. */
function hasRoom(): boolean {
  if (prefetches.size < PREFETCHES_MAX) return true;
  for (const [name, prefetch] of prefetches) if (prefetch.isEmpty) prefetches.delete(name);
  return prefetches.size < PREFETCHES_MAX;
}

/** Makes this request keep a prefetch that no request keeps. */
export function seeToKeeper(prefetch: LocalPrefetch, { pool, ctx, after }: PrefetchContext): void {
  if (prefetch.needsKeeper) ctx.waitUntil(new PrefetchKeeper(prefetch, pool, after).run());
}

const LOOK_EVERY_MS = 250;

/** Maximum time for which one request keeps a prefetch. Work after an answer may run for half a minute. */
const KEPT_MAX_MS = 25_000;

const ANSWER_LOST_MS = 3_000;

/**
 * Keeps a prefetch of this isolate as work of one request: renews it, releases unused slots, and receives the pool's
 * recall.
 */
class PrefetchKeeper {
  readonly #prefetch: LocalPrefetch;
  readonly #pool: PoolSource;
  readonly #after: Schedule;
  readonly #number: number;
  #rpc: PrefetchRpc | null = null;

  constructor(prefetch: LocalPrefetch, pool: PoolSource, after: Schedule) {
    this.#prefetch = prefetch;
    this.#pool = pool;
    this.#after = after;
    this.#number = prefetch.beginKeeping();
  }

  async run(): Promise<void> {
    const endsAt = steadyClock.now() + KEPT_MAX_MS;
    const prefetch = this.#prefetch;
    try {
      for (let failures = 0; this.#isActive;) {
        try {
          await (this.#rpc === null ? this.#begin() : this.#renew(this.#rpc));
          failures = 0;
        } catch (error) {
          this.#drop();
          // The pool gives its slots up, so none of them may be used any more.
          if (prefetch.hasLapsed) prefetch.end(true);
          else await pause(resumeRetryMs(failures, isOverload(error)), this.#after);
          failures += 1;
        }
        if (steadyClock.now() >= endsAt) break;
      }
      if (prefetch.isKeptBy(this.#number)) await this.#giveBack(prefetch.takeFree());
    } finally {
      this.#drop();
      prefetch.endKeeping(this.#number);
    }
  }

  get #isActive(): boolean {
    const prefetch = this.#prefetch;
    return prefetch.isKeptBy(this.#number) && !prefetch.isGone && !prefetch.isEmpty;
  }

  async #begin(): Promise<void> {
    const sentAt = steadyClock.now();
    const keeping = this.#pool().keepPrefetch(this.#prefetch.report());
    const kept = await within(ANSWER_LOST_MS, keeping, this.#after);
    if (kept.kind === 'gone') return this.#prefetch.end(true);
    this.#rpc = kept.loan;
    this.#prefetch.noteRenewed(sentAt);
  }

  async #renew(rpc: PrefetchRpc): Promise<void> {
    const prefetch = this.#prefetch;
    const sentAt = steadyClock.now();
    const lostMs = PREFETCH_RENEW_EVERY_MS + ANSWER_LOST_MS;
    const answer = await this.#meanwhile(within(lostMs, rpc.renew(prefetch.report()), this.#after));
    if (answer === null) return;
    if (answer === 'gone') return prefetch.end(true);
    if (answer === 'ok') {
      prefetch.noteRenewed(sentAt);
      return this.#giveBack(prefetch.takeSpare());
    }
    // It is still renewed until the last call on it ends or has its own lease. Such a renewal is no proof, because a
    // replaced instance may recall it as well.
    prefetch.end(false);
    await this.#giveBack(prefetch.takeFree());
    if (this.#isActive) await pause(PREFETCH_RENEW_EVERY_MS, this.#after);
  }

  /** Releases unused slots while a renewal is parked. null if there is nothing left to keep. */
  async #meanwhile(renewing: Promise<RenewAnswer>): Promise<RenewAnswer | null> {
    const prefetch = this.#prefetch;
    for (;;) {
      const looked = pause(LOOK_EVERY_MS, this.#after).then(() => null);
      const answer = await Promise.race([renewing, looked]);
      if (answer !== null) return answer;
      if (this.#isActive && (prefetch.isIdle || prefetch.isOver)) {
        await this.#giveBack(prefetch.takeFree());
      }
      if (this.#isActive) continue;
      renewing.catch(() => {});
      return null;
    }
  }

  async #giveBack(slots: readonly LocalSlot[]): Promise<void> {
    if (slots.length > 0) await giveBack(this.#prefetch, slots, this.#pool, this.#after);
  }

  #drop(): void {
    this.#rpc?.[Symbol.dispose]();
    this.#rpc = null;
  }
}

/** Releases slots. */
async function giveBack(
  prefetch: LocalPrefetch,
  slots: readonly LocalSlot[],
  pool: PoolSource,
  after: Schedule,
): Promise<void> {
  let report = prefetch.report();
  const send = (): Promise<void> => {
    const request = prefetch.backOf(slots, report);
    // A lost message may have been counted, so its calls are not reported again.
    report = silent(report);
    return pool().giveBack(request);
  };
  await sendLast(send, ANSWER_LOST_MS, releasePausesMs(), after);
}

function silent(report: PrefetchReport): PrefetchReport {
  return { ...report, ended: [] };
}

/** How long a call runs on a prefetched slot before it acquires its own lease. */
const OWN_AFTER_MS = 1_000;

interface PrefetchedLeaseParts {
  readonly prefetch: LocalPrefetch;
  readonly slot: LocalSlot;
  readonly access: PrefetchContext;
  readonly known: PrefetchedCall;
  /** Builds the request for a slot, which the lease then answers. */
  readonly asked: () => AskedLease;
  readonly onEnd: (end: LeaseEnd) => void;
}

/**
 * The hold of a call on a prefetched slot. If the call succeeds within a second, its group receives it with others in
 * one report. Otherwise the slot becomes a lease of its own.
 */
export class PrefetchedLease implements CallLease {
  readonly #parts: PrefetchedLeaseParts;
  readonly #beganAt = steadyClock.now();
  /** The lease that the slot has become. null while it is a prefetched slot. */
  #own: LeaseHolder | null = null;
  #status: number | null = null;
  #notes: CallNotes | undefined;
  #isReleased = false;
  #callOff: (() => void) | null = null;
  readonly wantsServed = false;
  readonly hasWaiters = false;

  constructor(parts: PrefetchedLeaseParts) {
    this.#parts = parts;
  }

  get leaseId(): string {
    return this.#parts.known.leaseId;
  }

  reportAnswer(status: number, notes?: CallNotes): void {
    this.#status = status;
    if (notes !== undefined) this.#notes = { ...this.#notes, ...notes };
    this.#own?.reportAnswer(status, notes);
  }

  report(signal: UpstreamSignal, isRepeat: boolean): void {
    // Another call may run on its slot by now.
    if (!this.#isReleased || this.#own !== null) this.#takeOwn().report(signal, isRepeat);
  }

  keep(onRevoked: () => void): void {
    const { after } = this.#parts.access;
    this.#callOff = after(OWN_AFTER_MS, () => {
      if (!this.#isReleased) this.#takeOwn().keep(onRevoked);
    });
  }

  /** A call that waits for other groups never runs on a prefetched slot. */
  async confirm(): Promise<void> {}

  giveBack(): Promise<void> {
    return this.release('unused');
  }

  forRun(): ReturnType<CallLease['forRun']> {
    return this.#isReleased ? Promise.resolve(null) : this.#takeOwn().forRun();
  }

  letGo(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#callOff?.();
    this.#takeOwn().letGo();
  }

  async release(outcome: LeaseOutcome, settlement?: Settlement): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#callOff?.();
    const isReported = outcome === 'success' || outcome === 'unused';
    const isReserved = settlement !== undefined && settlement.bill === undefined;
    if (this.#own !== null || !isReported || isReserved) {
      return this.#takeOwn().release(outcome, settlement);
    }
    const { prefetch, slot, access, known, onEnd } = this.#parts;
    if (outcome === 'success') {
      prefetch.note(known, slot, this.#status, this.#beganAt, this.#notes?.requestId, settlement);
    }
    onEnd({ outcome, status: this.#status, reason: null, used: settlement ?? null });
    if (prefetch.takeBack(slot)) await giveBack(prefetch, [slot], access.pool, access.after);
    else seeToKeeper(prefetch, access);
  }

  /** Exchanges the slot for its own lease, with the next message about it. */
  #takeOwn(): LeaseHolder {
    if (this.#own !== null) return this.#own;
    const { prefetch, slot, access, known, asked, onEnd } = this.#parts;
    const { pool, ctx, after } = access;
    prefetch.own(slot);
    const prefetched = { loan: prefetch.id, slot: slot.slot, told: prefetch.report() };
    const { renewedAt } = prefetch;
    const held = { lease: null, leaseId: known.leaseId, attachment: slot.attachment };
    const onKnown = (): void => prefetch.part(slot);
    const since = {
      grantedAt: this.#beganAt,
      renewedAt,
      ttlMs: PREFETCH_TTL_MS,
      onKnown,
      prefetched,
    };
    this.#own = new LeaseHolder(pool, asked(), held, ctx, after, onEnd, since);
    if (this.#status !== null) this.#own.reportAnswer(this.#status, this.#notes);
    seeToKeeper(prefetch, access);
    return this.#own;
  }
}

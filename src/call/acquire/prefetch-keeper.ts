import type { PrefetchReport, PrefetchRpc, RenewAnswer } from '../../contract/rpc/group-rpc.ts';
import { PREFETCH_RENEW_EVERY_MS } from '../../core/words/settings.ts';
import { sendLast } from '../../routing/held-lease.ts';
import { pause, within } from '../../runtime/async.ts';
import { steadyClock, type Schedule } from '../../runtime/clock.ts';
import { isOverload } from './failure-streak.ts';
import type { LocalPrefetch, LocalSlot } from './local-prefetch.ts';
import type { PoolSource } from './pools.ts';
import { releasePausesMs, resumeRetryMs } from './retry-delays.ts';

const LOOK_EVERY_MS = 250;

/** Maximum time for which one request keeps a prefetch. Work after an answer may run for half a minute. */
const KEPT_MAX_MS = 25_000;

const ANSWER_LOST_MS = 3_000;

/**
 * Keeps a prefetch of this isolate as work of one request: renews it, releases unused slots, and receives the pool's
 * recall.
 */
export class PrefetchKeeper {
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
export async function giveBack(
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

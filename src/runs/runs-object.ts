import { DurableObject } from 'cloudflare:workers';
import type { MadeRequest, RunRequest, RunsRpc } from '../contract/rpc/lease-objects-rpc.ts';
import type { LeaseOutcome } from '../core/words/outcome.ts';
import type { Env } from '../env.ts';
import { logEvent } from '../runtime/log.ts';
import { mapConcurrently, within, steadyClock, Timers } from '../runtime/async.ts';
import { isVerifiedLater } from '../contract/pool-name.ts';
import type { GroupRpc } from '../contract/rpc/group-rpc.ts';
import { claimNow, releaseById, renewById, sendLast } from '../routing/held-lease.ts';
import { partitionOfCalls, poolOf, UnverifiedPool } from '../routing/pool.ts';
import { MadeStore, RunStore, type HeldByRun, type UpstreamRun } from './store.ts';

/** Interval of renewals: three within the shortest lease duration. */
const RENEW_EVERY_MS = 12_000;
const AT_ONCE = 16;

/**
 * Delay after which an alarm counts as lost. Where a timer renews, the alarm is set this much later, so that it fires
 * only if the timer did not.
 */
const ALARM_LATE_MS = 3_000;

/** Maximum runs of one upstream. Slots of further calls are released with their answers. */
const RUNS_MAX = 2_000;

/** Result of a renewal: the renewed lease, or why there is none. `late` means that the pool did not answer. */
type RunRenewal = HeldByRun | 'late' | 'revoking' | 'gone';

/** Renews the leases of all runs at one upstream until a run is reported as ended or its time is up. */
export class RunsObject extends DurableObject<Env> implements RunsRpc {
  readonly #store: RunStore;
  readonly #runs: Map<string, UpstreamRun>;
  /** Holds in progress, and whether their runs ended meanwhile: a webhook may arrive first. A run may have several. */
  readonly #coming = new Set<{ readonly id: string; hasEnded: boolean }>();
  readonly #timers = new Timers(steadyClock);
  /** Created only in instances that store made objects. The others have no table for them. */
  #made: MadeStore | null = null;
  /** Wall-clock time of the alarm, or null if this instance has set none. */
  #alarmAt: number | null = null;
  #cancelTimer: (() => void) | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#store = new RunStore(ctx.storage.sql);
    this.#runs = this.#store.load();
    if (this.#runs.size === 0) return;
    ctx
      .blockConcurrencyWhile(async () => {
        const alarmAt = await ctx.storage.getAlarm();
        if (alarmAt === null || isLost(alarmAt)) await this.#arm(0);
        // The timer ended with the previous instance.
        else if (this.#hasTimer) await this.#arm(Math.max(0, alarmAt - ALARM_LATE_MS - Date.now()));
      })
      .catch(() => {});
  }

  async hold({ run: id, forMs, leases }: RunRequest): Promise<'held' | 'late' | 'no'> {
    if (this.#runs.size >= RUNS_MAX && !this.#runs.has(id)) return 'no';
    const now = steadyClock.now();
    const requested = leases.map(({ heldMs, hasLapsed, ...lease }): HeldByRun => {
      return { ...lease, grantedAt: now - heldMs, expiresAt: hasLapsed ? now : Infinity };
    });
    const coming = { id, hasEnded: false };
    this.#coming.add(coming);
    const renewed = await Promise.all(requested.map((lease) => this.#renew(lease)));
    this.#coming.delete(coming);
    if (coming.hasEnded) return 'no';
    const taken = renewed.filter((one) => typeof one === 'object');
    if (taken.length < leases.length) return renewed.includes('late') ? 'late' : 'no';
    const run = { id, until: now + forMs, leases: taken, isLate: false };
    const before = this.#runs.get(id);
    this.#keep(run);
    if (before !== undefined) await this.#release(replacedBy(before, run), 'success');
    await this.#arm();
    return 'held';
  }

  async end(id: string, outcome: LeaseOutcome): Promise<void> {
    if (this.#alarmAt !== null && isLost(this.#alarmAt)) await this.#arm(0);
    for (const coming of this.#coming) coming.hasEnded ||= coming.id === id;
    const run = this.#runs.get(id);
    if (run === undefined) return;
    this.#runs.delete(id);
    await this.#release(run.leases, outcome);
    // The row is removed after the release, so that a later instance continues with a run whose release failed.
    if (!this.#runs.has(id)) this.#store.remove(id);
  }

  async noteMade(request: MadeRequest): Promise<void> {
    this.#madeStore().put(request, Date.now());
  }

  async madeBy(ids: readonly string[]): Promise<string | null> {
    return this.#madeStore().find(ids, Date.now());
  }

  #madeStore(): MadeStore {
    this.#made ??= new MadeStore(this.ctx.storage.sql);
    return this.#made;
  }

  override alarm(): Promise<void> {
    return this.#renewAll();
  }

  async #renewAll(): Promise<void> {
    try {
      const now = steadyClock.now();
      const all = [...this.#runs.values()];
      const due = all.filter(({ until }) => until <= now);
      await mapConcurrently(due, AT_ONCE, (run) => this.#runOut(run));
      const renewedTo: number[] = [];
      await mapConcurrently([...this.#runs.values()], AT_ONCE, async (run) => {
        renewedTo.push(await this.#renewRun(run));
      });
      if (renewedTo.length > 0) this.#store.noteRenewed(Math.min(...renewedTo));
    } finally {
      await this.#arm();
    }
  }

  /** Ends a run whose end was not reported in time. */
  async #runOut({ id, leases }: UpstreamRun): Promise<void> {
    logEvent('run_not_ended', { upstream: leases[0]?.lease.holder.upstream ?? null, run: id });
    await this.end(id, 'cancelled');
  }

  /**
   * Renews the leases of a run, and drops those that are gone. Returns when they expire, or Infinity if the run is
   * late.
   */
  async #renewRun(run: UpstreamRun): Promise<number> {
    const renewed = await Promise.all(run.leases.map((lease) => this.#renew(lease)));
    // The run may have ended meanwhile, or begun again.
    if (this.#runs.get(run.id) !== run) return Infinity;
    if (renewed.includes('revoking')) {
      await this.end(run.id, 'cancelled');
      return Infinity;
    }
    const leases = run.leases.flatMap((lease, index): HeldByRun[] => {
      const one = renewed[index] ?? 'late';
      if (one === 'late') return [lease];
      return typeof one === 'object' ? [one] : [];
    });
    if (leases.length === 0) {
      this.#runs.delete(run.id);
      this.#store.remove(run.id);
      return Infinity;
    }
    const isLate = renewed.includes('late');
    const next = { ...run, leases, isLate };
    if (isLate || run.isLate || isOther(run, next)) this.#keep(next);
    else this.#runs.set(run.id, next);
    return isLate ? Infinity : Math.min(...leases.map(({ expiresAt }) => expiresAt));
  }

  async #renew(held: HeldByRun): Promise<RunRenewal> {
    try {
      const renewing = renewById(poolOfLease(this.env, held), held, held.status);
      const renewed = await within(ANSWER_LOST_MS, renewing, this.#timers.after);
      return renewed.kind === 'ok' ? renewed.held : renewed.kind;
    } catch {
      return 'late';
    }
  }

  #keep(run: UpstreamRun): void {
    this.#runs.set(run.id, run);
    this.#store.put(run);
  }

  async #release(leases: readonly HeldByRun[], outcome: LeaseOutcome): Promise<void> {
    await Promise.all(
      leases.map((held) => {
        const end = { outcome, status: held.status };
        const release = (): Promise<void> =>
          releaseById(poolOfLease(this.env, held), claimNow(held), end);
        return sendLast(release, ANSWER_LOST_MS, RELEASE_PAUSES_MS, this.#timers.after);
      }),
    );
  }

  /** Schedules the next renewal of all leases: after the interval, or when the first run's time is up. */
  async #arm(withinMs = RENEW_EVERY_MS): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#alarmAt = null;
    if (this.#runs.size === 0) return this.ctx.storage.deleteAlarm();
    const untils = [...this.#runs.values()].map(({ until }) => until);
    const overInMs = Math.min(...untils) - steadyClock.now();
    const inMs = Math.max(0, Math.min(withinMs, overInMs));
    // An alarm uses the wall clock and is late after that was set back. In a single process a timer costs nothing.
    if (this.#hasTimer) {
      this.#cancelTimer = this.#timers.after(inMs, () => this.ctx.waitUntil(this.#renewAll()));
    }
    this.#alarmAt = Date.now() + inMs + (this.#hasTimer ? ALARM_LATE_MS : 0);
    await this.ctx.storage.setAlarm(this.#alarmAt);
  }

  get #hasTimer(): boolean {
    return this.env.BOOT_ID !== undefined;
  }
}

/**
 * Whether an alarm will not fire in time. An overdue alarm may never fire. One that is set too far ahead dates from
 * before the wall clock was set back.
 */
function isLost(alarmAt: number): boolean {
  const inMs = alarmAt - Date.now();
  return inMs < -ALARM_LATE_MS || inMs > RENEW_EVERY_MS + ALARM_LATE_MS;
}

/** Leases that a run held before it began again under the same id. */
function replacedBy({ leases }: UpstreamRun, next: UpstreamRun): HeldByRun[] {
  const kept = new Set(next.leases.map(({ lease }) => lease.leaseId));
  return leases.filter(({ lease }) => !kept.has(lease.leaseId));
}

/** Whether an instance of a pool has resumed a lease, or a lease is gone. */
function isOther({ leases: before }: UpstreamRun, { leases }: UpstreamRun): boolean {
  return (
    before.length !== leases.length ||
    before.some(({ lease }, index) => lease.attachment !== leases[index]?.lease.attachment)
  );
}

/** Time limit for a pool's answer. */
const ANSWER_LOST_MS = 5_000;

/** Pauses before a release is retried. A pool that is being reset is soon available again. */
const RELEASE_PAUSES_MS = [500, 2_000];

/** The pool of a lease. While its key is unverified, it is in the object with all unverified pools. */
function poolOfLease(
  env: Env,
  { lease, ...config }: HeldByRun,
): Pick<GroupRpc, 'renew' | 'release'> {
  const { group, partition } = lease;
  if (env.TRIALS === undefined || !isVerifiedLater(lease)) {
    return poolOf(env, group, partition, config);
  }
  return new UnverifiedPool(env, { group, partition }, async () => ({
    group,
    partition: await partitionOfCalls(env, lease),
    config,
  }));
}

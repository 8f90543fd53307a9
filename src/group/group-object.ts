import { DurableObject } from 'cloudflare:workers';
import type {
  PoolPreview,
  PeriodCosts,
  PoolMetrics,
  PoolReport,
  WatchRequest,
} from '../contract/rpc/feed-rpc.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import {
  type CorrectedSpend,
  type SpendCorrection,
  POOL_IDLE_MS,
  type AcquireAnswer,
  type AcquireRequest,
  type CallerCalls,
  type CallFilter,
  type GiveBackRequest,
  type GroupDefinition,
  type GroupRpc,
  type HandedPool,
  type KeepPrefetchAnswer,
  type LeaseRpc,
  type PrefetchReport,
  type RenewByIdAnswer,
  type ResumeAnswer,
  type ResumeRequest,
} from '../contract/rpc/group-rpc.ts';
import type { CallQuery, CallsFound } from '../contract/calls.ts';
import type { DecisionFilter, DecisionInfo } from '../contract/decisions.ts';
import type { CallCounts, PoolHistory } from '../contract/history.ts';
import type { LeaseInfo, PoolStatus, WaiterInfo } from '../contract/status.ts';
import type { Warning } from '../contract/attention.ts';
import type { NewCorrection } from '../core/parts/spend.ts';
import type { CallNotes, LeaseOutcome } from '../core/words/outcome.ts';
import { leaseId, memberId, ticketId } from '../core/words/ids.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import type { Lane, Settlement } from '../core/words/ticket.ts';
import type { Env } from '../env.ts';
import { Pool } from './pool.ts';

// oxlint-disable require-await -- the contract is promises; a throw must become a rejection

/**
 * The Durable Object of one pool. It maps the calls of Workers (documented in `GroupRpc`) to the part of the pool that
 * answers each. Every method can be called from outside.
 */
export class GroupObject extends DurableObject<Env> implements GroupRpc {
  readonly #pool: Pool;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#pool = new Pool(ctx, env);
    const { presence, recallsWindow } = this.#pool;
    if (!recallsWindow) return;
    const recalled = async (): Promise<void> => presence.recall(await ctx.storage.getAlarm());
    ctx.waitUntil(ctx.blockConcurrencyWhile(recalled));
  }

  /**
   * Fires at the end of a window in which the directory considers the pool in use, or to remove a pool that never had a
   * success.
   */
  override async alarm(): Promise<void> {
    const { shell, removal, presence } = this.#pool;
    shell.tick();
    if (!(await removal.atAlarm())) await presence.end();
  }

  // Callers.

  acquire(request: AcquireRequest): Promise<AcquireAnswer> {
    return this.#pool.acquires.acquire(request);
  }

  resume(request: ResumeRequest): Promise<ResumeAnswer> {
    return this.#pool.acquires.resume(request);
  }

  async cancel(ticket: string): Promise<void> {
    this.#pool.acquires.cancel(ticketId(ticket));
  }

  keepPrefetch(report: PrefetchReport): Promise<KeepPrefetchAnswer> {
    return this.#pool.loans.keep(report);
  }

  async giveBack(request: GiveBackRequest): Promise<void> {
    this.#pool.loans.giveBack(request);
  }

  // Holders by id, and holders whose stub no longer works.

  renew(id: string, status: number | null, held: ResumeRequest): Promise<RenewByIdAnswer> {
    return this.#pool.byId.renew(leaseId(id), status, held);
  }

  async release(
    id: string,
    outcome: LeaseOutcome,
    status: number | null,
    settlement?: Settlement,
    held?: ResumeRequest,
    notes?: CallNotes,
  ): Promise<void> {
    this.#pool.leases.releaseById(leaseId(id), outcome, status, settlement, held, notes);
  }

  async report(
    id: string,
    signal: UpstreamSignal,
    isRepeat: boolean,
    held?: ResumeRequest,
  ): Promise<void> {
    this.#pool.leases.report(leaseId(id), signal, isRepeat, held);
  }

  // Operators.

  revoke(id: string): Promise<boolean> {
    return this.#pool.operator.revoke(leaseId(id));
  }

  revokeAll(filter: CallFilter, isDry: boolean): Promise<string[]> {
    return this.#pool.operator.revokeAll(filter, isDry);
  }

  async dismissAll(filter: CallFilter, isDry: boolean): Promise<string[]> {
    return this.#pool.operator.dismissAll(filter, isDry);
  }

  relearn(): Promise<void> {
    return this.#pool.operator.relearn();
  }

  correctSpend(wanted: NewCorrection): Promise<CorrectedSpend | null> {
    return this.#pool.operator.correctSpend(wanted);
  }

  undoCorrection(id: string): Promise<CorrectedSpend | null> {
    return this.#pool.operator.undoCorrection(id);
  }

  async corrections(): Promise<readonly SpendCorrection[]> {
    return this.#pool.operator.corrections();
  }

  bringBack(member: string): Promise<boolean> {
    return this.#pool.operator.bringBack(memberId(member));
  }

  async promote(ticket: string, lane: Lane | null, toFront: boolean): Promise<boolean> {
    return this.#pool.operator.promote(ticketId(ticket), lane, toFront);
  }

  async dismiss(ticket: string): Promise<boolean> {
    return this.#pool.operator.dismiss(ticketId(ticket));
  }

  // The directory, and the object that contains unverified pools.

  async reconfigure(pushed: GroupDefinition): Promise<void> {
    this.#pool.link.take(pushed);
  }

  async forget(jurisdiction: GroupConfig['jurisdiction']): Promise<boolean> {
    const { link, view } = this.#pool;
    if (!link.isRetired && view.idleMs() < POOL_IDLE_MS) return false;
    await link.listing.forget(jurisdiction);
    return true;
  }

  async isVerified(): Promise<boolean> {
    return this.#pool.verification.isStored;
  }

  takeOver(handed: HandedPool): Promise<LeaseRpc[]> {
    return this.#pool.handOver.receive(handed);
  }

  // Readers.

  async status(): Promise<PoolStatus> {
    return this.#pool.view.status();
  }

  async metrics(): Promise<PoolMetrics> {
    return this.#pool.view.metrics();
  }

  async history(fromMs: number, toMs: number, stepMs: number): Promise<PoolHistory> {
    return this.#pool.view.history(fromMs, toMs, stepMs);
  }

  async callsOfLastHour(): Promise<CallCounts> {
    return this.#pool.view.callsOfLastHour();
  }

  async costs(period: string): Promise<PeriodCosts> {
    return this.#pool.view.costs(period);
  }

  async decisions(filter: DecisionFilter): Promise<DecisionInfo[]> {
    return this.#pool.view.decisions(filter);
  }

  async calls(query: CallQuery): Promise<CallsFound> {
    return this.#pool.view.calls(query);
  }

  async flush(): Promise<void> {
    this.#pool.flush();
    await this.ctx.storage.sync();
  }

  async warnings(): Promise<Warning[]> {
    return this.#pool.view.warnings();
  }

  async preview(before: string, after: string): Promise<PoolPreview> {
    return this.#pool.view.preview(before, after);
  }

  async waiters(): Promise<WaiterInfo[]> {
    return this.#pool.view.waiters();
  }

  async leases(): Promise<LeaseInfo[]> {
    return this.#pool.view.leases();
  }

  async callsOf(caller: string): Promise<CallerCalls> {
    return this.#pool.view.callsOf(caller);
  }

  async watch(request: WatchRequest): Promise<PoolReport> {
    return this.#pool.view.watch(request);
  }
}

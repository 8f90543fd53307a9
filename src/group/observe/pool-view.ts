import type {
  PoolPreview,
  PeriodCosts,
  ReportedCosts,
  PoolMetrics,
  PoolReport,
  WatchRequest,
} from '../../contract/rpc/feed-rpc.ts';
import type { CallerCalls } from '../../contract/rpc/group-rpc.ts';
import type { CallQuery, CallsFound } from '../../contract/calls.ts';
import type { DecisionFilter, DecisionInfo } from '../../contract/decisions.ts';
import type { CallCounts, PoolHistory } from '../../contract/history.ts';
import type { PresenceReport } from '../../contract/rpc/directory-rpc.ts';
import type { LeaseInfo, PoolStatus, WaiterInfo } from '../../contract/status.ts';
import type { Warning } from '../../contract/attention.ts';
import { isSplit, type GroupState } from '../../core/state.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import { attemptOf } from '../../core/stats.ts';
import { latestFirst, type Decision } from '../../core/parts/decision-log.ts';
import type { Controls } from '../../core/member.ts';
import { joinCosts, totalOf, type DayCosts } from '../../core/parts/costs.ts';
import { dateOf, daysOf, periodsAt } from '../../history/costs.ts';
import type { AcquireCalls } from '../acquire-calls.ts';
import type { PoolIdentity } from '../definition.ts';
import type { DirectoryLink } from '../directory-link.ts';
import type { Idleness } from '../idleness.ts';
import type { Shell } from '../shell.ts';
import type { CostRows } from '../bound-store.ts';
import { CallerView, leaseInfos, poolDetail, poolStatus, waiterInfos } from './status.ts';
import type { LimitsSeen } from './limit-status.ts';
import type { Observation } from './observation.ts';
import { poolPreview } from './preview.ts';
import { shownScope } from './scope-status.ts';

/** What readers get of a pool: its status, decisions and costs. */

interface PoolViewParts {
  readonly shell: Shell;
  readonly identity: PoolIdentity;
  readonly link: DirectoryLink;
  readonly idleness: Idleness;
  readonly observation: Observation;
  readonly acquires: AcquireCalls;
  readonly limitsSeen: LimitsSeen;
  readonly costs: CostView;
}

/** The readers' side of a pool: everything that can be read without changing it. Due changes are applied first. */
export class PoolView {
  readonly #parts: PoolViewParts;
  readonly #state: GroupState;
  readonly #callerView = new CallerView();

  constructor(parts: PoolViewParts) {
    this.#parts = parts;
    this.#state = parts.shell.state;
  }

  status(): PoolStatus {
    return this.#status(this.#tick());
  }

  metrics(): PoolMetrics {
    const now = this.#tick();
    return this.#parts.observation.metrics(this.#status(now), now);
  }

  history(fromMs: number, toMs: number, stepMs: number): PoolHistory {
    return this.#parts.observation.history(fromMs, toMs, stepMs, this.#tick());
  }

  callsOfLastHour(): CallCounts {
    return this.#parts.observation.callsOfLastHour(this.#tick());
  }

  costs(period: string): PeriodCosts {
    this.#tick();
    return this.#parts.costs.of(period);
  }

  decisions(filter: DecisionFilter): DecisionInfo[] {
    this.#tick();
    return decisionInfos(this.#state, filter);
  }

  calls(filter: CallQuery): CallsFound {
    return this.#parts.observation.calls(filter, this.#tick());
  }

  warnings(): Warning[] {
    this.#tick();
    return this.#parts.observation.warnings();
  }

  preview(before: string, after: string): PoolPreview {
    const { partition } = this.#parts.identity;
    return poolPreview(this.#state, before, after, this.#tick(), partition);
  }

  waiters(): WaiterInfo[] {
    return waiterInfos(this.#state, this.#tick());
  }

  leases(): LeaseInfo[] {
    return leaseInfos(this.#state, this.#tick());
  }

  callsOf(caller: string): CallerCalls {
    const now = this.#tick();
    const calls = this.#callerView.callsOf(caller, this.#state, now);
    return { ...calls, status: this.#status(now) };
  }

  watch(request: WatchRequest): PoolReport {
    this.#tick();
    return this.#parts.observation.feed.watch(request);
  }

  report(isDetailed: boolean): PoolReport {
    const now = this.#tick();
    const { version } = this.#parts.link.definition;
    const detail = isDetailed ? poolDetail(this.#state, now) : null;
    return { at: now, configVersion: version, status: this.#status(now), detail };
  }

  /**
   * Builds the state that the directory stores while the pool rests. It is built during a turn, so due changes are not
   * applied.
   */
  presenceReport(): PresenceReport {
    const now = this.#parts.shell.now();
    const metrics = this.#parts.observation.metrics(this.#status(now), now);
    const { controls, serving } = this.#state;
    const ratesOfMembers = serving.map(({ id, controls: { rates } }) => [id, rates] as const);
    return {
      at: now,
      metrics,
      rates: controls.rates,
      ...(isSplit(this.#state) ? { memberRates: Object.fromEntries(ratesOfMembers) } : {}),
    };
  }

  idleMs(): number {
    return this.#parts.idleness.forMs(this.#tick());
  }

  #tick(): InstantMs {
    return this.#parts.shell.tick();
  }

  #status(now: InstantMs): PoolStatus {
    const { identity, link, idleness, observation, acquires, limitsSeen } = this.#parts;
    const seen = {
      passedUnlimited: acquires.passedUnlimited,
      passedUnlimitedAt: acquires.passedUnlimitedAt,
      idleMs: idleness.forMs(now),
      ...observation.waits(now),
      last_hour: observation.lastHour(now),
      ...observation.lately(now),
    };
    const status = poolStatus(identity, link.definition, this.#state, seen, now);
    return { ...status, ...limitsSeen.status() };
  }
}

/** Lists the remembered decisions of one pool that match a filter, latest first. */
function decisionInfos({ decisions }: GroupState, filter: DecisionFilter): DecisionInfo[] {
  const { ids, fromMs = -Infinity, toMs = Infinity, decided, limit = Infinity } = filter;
  const wanted = ids === undefined ? null : new Set(ids);
  return latestFirst(decisions)
    .filter(
      (each) =>
        each.decidedAt >= fromMs &&
        each.decidedAt < toMs &&
        (decided === undefined || each.decided === decided) &&
        (wanted === null || wanted.has(each.leaseId) || wanted.has(each.ticket.id)),
    )
    .slice(0, limit)
    .map(infoOf);
}

function infoOf(decision: Decision): DecisionInfo {
  const { ticket, leaseId, arrivedAt, decidedAt, upstreamSignal, endedAt } = decision;
  const { tenant, agent, upstream, model, kind } = ticket.holder;
  return {
    lease: leaseId,
    ...(kind === undefined ? {} : { kind }),
    ticket: ticket.id,
    attempt: attemptOf(leaseId),
    lane: ticket.lane,
    tenant,
    agent,
    upstream,
    model,
    slots: ticket.slots,
    arrived_at: new Date(arrivedAt).toISOString(),
    decided_at: new Date(decidedAt).toISOString(),
    waited_ms: Math.max(0, decidedAt - arrivedAt),
    position_at_arrival: decision.positionAtArrival,
    waited_for: decision.waitedFor,
    ...(decision.scope !== undefined && { scope: shownScope(decision.scope) }),
    outcome: decision.decided,
    ...(decision.placed === null ? {} : { placed: decision.placed }),
    rejection: decision.rejection,
    upstream_status: decision.upstreamStatus,
    upstream_said: upstreamSignal?.kind ?? null,
    upstream_retry_after_ms: upstreamSignal?.retryAfterMs ?? null,
    ended: decision.ended,
    held_ms: endedAt === null ? null : endedAt - decidedAt,
  };
}

/** Reads a pool's costs: past days from their rows, others from memory. */
export class CostView {
  readonly #controls: Pick<Controls, 'costs'>;
  readonly #rows: CostRows;

  constructor(controls: Pick<Controls, 'costs'>, rows: CostRows) {
    this.#controls = controls;
    this.#rows = rows;
  }

  /** Returns the costs of a day or month by its name. An invalid name has no costs. */
  of(period: string): PeriodCosts {
    const range = daysOf(period);
    if (range === null) return { lines: [], rest: null, days: [] };
    return sumUp(this.#between(range.from, range.to));
  }

  /**
   * Returns the costs for the directory to store, as JSON: the current and the previous day and month. Returns null if
   * the pool never had any.
   */
  report(now: InstantMs): string | null {
    if (this.#controls.costs.today === null) return null;
    const all = Object.values(periodsAt(now)).map((period) => [period, this.of(period)] as const);
    const report: ReportedCosts = Object.fromEntries(all.filter(([, { days }]) => days.length > 0));
    return JSON.stringify(report);
  }

  #between(from: number, to: number): DayCosts[] {
    const { closed, today } = this.#controls.costs;
    const unwritten = today === null ? closed : [...closed, today];
    return [
      ...this.#rows.read(from, to),
      ...unwritten.filter(({ day }) => day >= from && day <= to),
    ];
  }
}

function sumUp(days: readonly DayCosts[]): PeriodCosts {
  const sums = days.map((each) => ({ date: dateOf(each.day), ...totalOf(each) }));
  return { ...joinCosts(days), days: sums };
}

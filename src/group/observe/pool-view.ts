import type { PoolPreview } from '../../contract/rpc/change-preview.ts';
import type { PoolReport, WatchRequest } from '../../contract/rpc/feed-rpc.ts';
import type { PeriodCosts } from '../../contract/rpc/costs-rpc.ts';
import type { CallerCalls } from '../../contract/rpc/group-rpc.ts';
import type { CallQuery, CallsFound } from '../../contract/calls.ts';
import type { DecisionFilter, DecisionInfo } from '../../contract/decisions.ts';
import type { CallCounts, PoolHistory } from '../../contract/history.ts';
import type { PoolMetrics } from '../../contract/rpc/pool-metrics.ts';
import type { PresenceReport } from '../../contract/rpc/presence-rpc.ts';
import type { LeaseInfo, PoolStatus, WaiterInfo } from '../../contract/status.ts';
import type { Warning } from '../../contract/warnings.ts';
import { isSplit } from '../../core/members.ts';
import type { GroupState } from '../../core/state.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import type { AcquireCalls } from '../acquire-calls.ts';
import type { PoolIdentity } from '../definition.ts';
import type { DirectoryLink } from '../directory-link.ts';
import type { Idleness } from '../idleness.ts';
import type { Shell } from '../shell.ts';
import { CallerView } from './caller-calls.ts';
import type { CostView } from './cost-view.ts';
import { decisionInfos } from './decisions.ts';
import type { LimitsSeen } from './limits-seen.ts';
import type { Observation } from './observation.ts';
import { poolPreview } from './preview.ts';
import { leaseInfos, poolDetail, poolStatus, waiterInfos } from './status.ts';

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

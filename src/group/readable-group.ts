import { DurableObject } from 'cloudflare:workers';
import type { PoolPreview } from '../contract/rpc/change-preview.ts';
import type { Env } from '../env.ts';
import type { PoolReport, WatchRequest } from '../contract/rpc/feed-rpc.ts';
import type { CallerCalls, GroupRpc } from '../contract/rpc/group-rpc.ts';
import type { LeaseInfo, PoolStatus, WaiterInfo } from '../contract/status.ts';
import type { DecisionFilter, DecisionInfo } from '../contract/decisions.ts';
import type { PoolHistory } from '../contract/history.ts';
import type { PoolMetrics } from '../contract/rpc/pool-metrics.ts';
import type { Warning } from '../contract/warnings.ts';
import type { InstantMs } from '../core/words/ids.ts';
import type { GroupState } from '../core/state.ts';
import { CallerView } from './observe/caller-calls.ts';
import { decisionInfos } from './observe/decisions.ts';
import type { Definition, PoolIdentity } from './definition.ts';
import type { Observation } from './observe/observation.ts';
import { poolPreview } from './observe/preview.ts';
import { leaseInfos, poolDetail, poolStatus, waiterInfos } from './observe/status.ts';

/** A pool at one instant, with everything that is due done. */
export interface Reading {
  readonly now: InstantMs;
  readonly state: GroupState;
  readonly identity: PoolIdentity;
  readonly definition: Definition;
  readonly watch: Observation;
  readonly passedUnlimited: number;
  readonly idleMs: number;
}

type Readings = Pick<
  GroupRpc,
  | 'status'
  | 'metrics'
  | 'history'
  | 'decisions'
  | 'warnings'
  | 'preview'
  | 'waiters'
  | 'callsOf'
  | 'leases'
  | 'watch'
>;

/** A symbol: nobody can call it from outside, as he could a method with a name. */
export const READ = Symbol('read');

/** What may be asked of a pool without changing anything in it. */
export abstract class ReadableGroup extends DurableObject<Env> implements Readings {
  readonly #callerView = new CallerView();

  abstract [READ](): Reading;

  // oxlint-disable-next-line require-await -- the contract is a promise; a throw must become a rejection
  async status(): Promise<PoolStatus> {
    return statusOf(this[READ]());
  }

  // oxlint-disable-next-line require-await -- as above
  async metrics(): Promise<PoolMetrics> {
    const reading = this[READ]();
    return reading.watch.metrics(statusOf(reading));
  }

  // oxlint-disable-next-line require-await -- as above
  async history(fromMs: number, toMs: number, stepMs: number): Promise<PoolHistory> {
    const { watch, now } = this[READ]();
    return watch.history(fromMs, toMs, stepMs, now);
  }

  // oxlint-disable-next-line require-await -- as above
  async decisions(filter: DecisionFilter): Promise<DecisionInfo[]> {
    return decisionInfos(this[READ]().state, filter);
  }

  // oxlint-disable-next-line require-await -- as above
  async warnings(): Promise<Warning[]> {
    return this[READ]().watch.warnings();
  }

  // oxlint-disable-next-line require-await -- as above
  async preview(before: string, after: string): Promise<PoolPreview> {
    const { state, now } = this[READ]();
    return poolPreview(state, before, after, now);
  }

  // oxlint-disable-next-line require-await -- as above
  async waiters(): Promise<WaiterInfo[]> {
    const { state, now } = this[READ]();
    return waiterInfos(state, now);
  }

  // oxlint-disable-next-line require-await -- as above
  async callsOf(caller: string): Promise<CallerCalls> {
    const reading = this[READ]();
    const { state, now } = reading;
    return { ...this.#callerView.callsOf(caller, state, now), status: statusOf(reading) };
  }

  // oxlint-disable-next-line require-await -- as above
  async leases(): Promise<LeaseInfo[]> {
    const { state, now } = this[READ]();
    return leaseInfos(state, now);
  }

  // oxlint-disable-next-line require-await -- as above
  async watch(request: WatchRequest): Promise<PoolReport> {
    return this[READ]().watch.feed.watch(request);
  }
}

/** What the hub of the dashboards is told. */
export function reportOf(reading: Reading, isDetailed: boolean): PoolReport {
  const { state, now, definition } = reading;
  const detail = isDetailed ? poolDetail(state, now) : null;
  return { at: now, configVersion: definition.version, status: statusOf(reading), detail };
}

function statusOf({ identity, definition, state, watch, now, ...seen }: Reading): PoolStatus {
  return poolStatus(identity, definition, state, { ...seen, ...watch.waits(now) }, now);
}

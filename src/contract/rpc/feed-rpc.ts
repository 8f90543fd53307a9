import type { Attention } from '../attention.ts';
import { GAUGES, type GaugeRow } from '../gauges.ts';
import type { Warning } from '../warnings.ts';
import type { LeaseInfo, PoolStatus, WaiterInfo } from '../status.ts';

/**
 * Messages between pools and the hub of the dashboards. Both may run different versions for minutes after a deploy, so
 * fields are only added.
 */

/** Maximum number of leases, and of waiters, of a pool that are sent one by one. The others are only counted. */
export const DETAIL_ROWS_MAX = 200;

/** How long, and how often, the hub wants reports. */
export interface WatchSpan {
  /** End in epoch milliseconds. The hub extends it before if a dashboard is still open. */
  readonly untilAt: number;
  /** Minimum time between two reports of a pool. */
  readonly everyMs: number;
}

export interface PoolWatchRequest extends WatchSpan {
  /** Identifies the pool to the hub. */
  readonly key: string;
}

export interface WatchRequest extends PoolWatchRequest {
  /** Include leases and waiters. */
  readonly isDetailed: boolean;
}

/** The first leases and waiters of a pool. */
export interface PoolDetail {
  /** Oldest first. */
  readonly leases: readonly LeaseInfo[];
  /** In the order in which they will probably be granted. */
  readonly waiters: readonly WaiterInfo[];
  readonly leasesTotal: number;
  readonly waitersTotal: number;
}

export interface PoolReport {
  /** Clock of the pool in epoch milliseconds. Later reports have larger values. */
  readonly at: number;
  /** Version of the pool's configuration. If it is later than that of the hub, the hub updates its own. */
  readonly configVersion: number;
  readonly status: PoolStatus;
  /** null if it was not requested. */
  readonly detail: PoolDetail | null;
}

export type FeedWants = 'nothing' | 'status' | 'detail';

export interface FeedRpc {
  /** Opens a stream of server-sent events. The caller has checked the permission. */
  fetch(request: Request): Promise<Response>;
  push(key: string, report: PoolReport): Promise<FeedWants>;
  /** Queries all pools, and returns the attention list, the worst first. */
  attention(): Promise<readonly Attention[]>;
  warned(warning: Warning): Promise<void>;
}

/** Gauges that grow with time alone. */
export const AGEING_GAUGES = Object.entries<Pick<GaugeRow, 'shape' | 'ages'>>(GAUGES).flatMap(
  ([name, { ages }]) => (ages === undefined ? [] : [{ name: name as AgeingGauge, ages }]),
);

type AgeingGauge = {
  [Name in keyof typeof GAUGES]: 'ages' extends keyof (typeof GAUGES)[Name] ? Name : never;
}[keyof typeof GAUGES];

/** Fields that change with time alone, and need no report. */
const AGES: ReadonlySet<string> = new Set([
  ...AGEING_GAUGES.map(({ name }) => name),
  'at',
  'age_ms',
  'waited_ms',
  'estimate_ms',
]);

/**
 * Replacer for `JSON.stringify` that omits what changes with time alone, so that two texts differ only if there is
 * news. A change to null is news.
 */
export function withoutAges(name: string, value: unknown): unknown {
  return AGES.has(name) && value !== null ? undefined : value;
}

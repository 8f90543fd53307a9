import type { Attention } from '../attention.ts';
import type { Warning } from '../warnings.ts';
import type { LeaseInfo, PoolStatus, WaiterInfo } from '../status.ts';

/**
 * Messages between pools and the hub of the dashboards. Both may be of another version for minutes
 * after a deploy, so this only grows.
 */

/**
 * Maximum of leases, and of waiters, of a pool that are told one by one; the rest is only counted.
 */
export const DETAIL_ROWS_MAX = 200;

/** Time for which, and how often, the hub wants to be told. */
export interface WatchSpan {
  /** Until when, in epoch milliseconds. The hub asks again before that if somebody still looks. */
  readonly untilAt: number;
  /** A pool tells at most once in so many milliseconds. */
  readonly everyMs: number;
}

/** The facts that a pool needs to tell the hub what happens in it. */
export interface PoolWatchRequest extends WatchSpan {
  /** Names the pool towards the hub. */
  readonly key: string;
}

/** How the hub asks a pool to tell what happens in it. */
export interface WatchRequest extends PoolWatchRequest {
  /** With its leases and its waiters. */
  readonly isDetailed: boolean;
}

/** The first leases and waiters of a pool. */
export interface PoolDetail {
  /** Oldest first. */
  readonly leases: readonly LeaseInfo[];
  /** The one in front will probably be granted first. */
  readonly waiters: readonly WaiterInfo[];
  readonly leasesTotal: number;
  readonly waitersTotal: number;
}

/** A pool at one instant. */
export interface PoolReport {
  /** By the pool's clock, in epoch milliseconds: the later of two reports has the larger one. */
  readonly at: number;
  /** Version of the configuration that it goes by: a later one than the hub's is news to the hub. */
  readonly configVersion: number;
  readonly status: PoolStatus;
  /** Null: not asked for. */
  readonly detail: PoolDetail | null;
}

/** Reports that the hub wants of a pool from now on. */
export type FeedWants = 'nothing' | 'status' | 'detail';

export interface FeedRpc {
  /** Opens a stream of server-sent events. The caller has checked who may see them. */
  fetch(request: Request): Promise<Response>;
  /** Something changed in a pool. */
  push(key: string, report: PoolReport): Promise<FeedWants>;
  /** Reads how all pools are, and lists what needs a person, the worst first. */
  attention(): Promise<readonly Attention[]>;
  /** A pool raised a warning. */
  warned(warning: Warning): Promise<void>;
}

/** Fields that grow or shrink with time alone, and are no news. */
const AGES: ReadonlySet<string> = new Set([
  'at',
  'idle_ms',
  'oldest_wait_ms',
  'age_ms',
  'waited_ms',
  'estimate_ms',
  'stalled_ms',
]);

/**
 * For `JSON.stringify`: leaves out what changes with time alone, so that two texts differ by news only. That there is no such
 * figure any more is news.
 */
export function withoutAges(name: string, value: unknown): unknown {
  return AGES.has(name) && value !== null ? undefined : value;
}

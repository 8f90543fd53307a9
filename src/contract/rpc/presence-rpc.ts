import type { RateUse } from '../../core/parts/rates.ts';
import type { GroupConfig } from '../config/config.ts';
import type { PoolWatchRequest } from './feed-rpc.ts';
import type { GroupDefinition } from './group-rpc.ts';
import type { PoolMetrics } from './pool-reports.ts';

/** State of an idle pool that the directory stores, so that reads need not wake the pool. */
export interface PresenceReport {
  /** Time of the report, in epoch milliseconds. */
  readonly at: number;
  readonly metrics: PoolMetrics;
  /** Used part of its limits, which recovers with time. */
  readonly rates: RateUse;
  /** The same for its members, by their ids. Absent if the group has none. */
  readonly memberRates?: Readonly<Record<string, RateUse>>;
}

export interface PresentPool {
  readonly group: string;
  readonly partition: string | null;
  /** Jurisdiction of its group. Absent if the group is not known yet. */
  readonly jurisdiction?: GroupConfig['jurisdiction'];
  /**
   * End of the window that the pool starts, in epoch milliseconds, or of its last one if it is idle. Later windows have
   * larger values.
   */
  readonly window: number;
  readonly idleMs: number;
  /** `PresenceReport` as JSON. */
  readonly said: string;
  /** `ReportedCosts` as JSON. Absent if there are none. */
  readonly costs?: string;
}

/** Response to a pool that is in use. */
export interface Woken {
  readonly definition: GroupDefinition;
  /** The pool is on the list of pools that are notified of every change. */
  readonly isListed: boolean;
  /** How to report to the hub of the dashboards. Absent if no dashboard is open, as far as the directory knows. */
  readonly watch?: PoolWatchRequest;
}

export interface StoredPool {
  readonly group: string;
  readonly partition: string | null;
  readonly jurisdiction: GroupConfig['jurisdiction'];
  /** Last `PresenceReport` as JSON. null if the pool is in use and must be queried. */
  readonly said: string | null;
}

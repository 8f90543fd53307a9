import type { RateUse } from '../../core/parts/rates.ts';
import type { GroupConfig } from '../config/config.ts';
import type { PoolWatchRequest } from './feed-rpc.ts';
import type { GroupDefinition } from './group-rpc.ts';
import type { PoolMetrics } from './pool-metrics.ts';

/** The facts of a pool that the directory keeps, for whoever asks while it rests. */
export interface PresenceReport {
  /** When, in epoch milliseconds. */
  readonly at: number;
  readonly metrics: PoolMetrics;
  /** The used part of its limits, which comes back with time. */
  readonly rates: RateUse;
  /** The same of its members, by their ids. Absent: the group names none. */
  readonly memberRates?: Readonly<Record<string, RateUse>>;
}

/** A pool that says whether it is in use. */
export interface PresentPool {
  readonly group: string;
  readonly partition: string | null;
  /** The jurisdiction of its group. Absent: it does not know its group yet. */
  readonly jurisdiction?: GroupConfig['jurisdiction'];
  /** The window that it begins, by its end, in epoch milliseconds; or the last one, where it rests. Later ones are larger. */
  readonly window: number;
  /** How long nobody has used it. */
  readonly idleMs: number;
  /** `PoolSaid` as JSON. */
  readonly said: string;
  /** `SaidCosts` as JSON. Absent: it has none. */
  readonly costs?: string;
}

/** The answer to a pool that is in use. */
export interface Woken {
  readonly definition: GroupDefinition;
  /** It is on the list of pools that are told of every change. */
  readonly isListed: boolean;
  /** How the hub of the dashboards is told what happens in it. Absent: nobody looks, as far as the directory knows. */
  readonly watch?: PoolWatchRequest;
}

/** The knowledge of one pool. */
export interface StoredPool {
  readonly group: string;
  readonly partition: string | null;
  readonly jurisdiction: GroupConfig['jurisdiction'];
  /** `PoolSaid` as JSON, of when it said last how it is. Null: it is in use, and is to be asked. */
  readonly said: string | null;
}

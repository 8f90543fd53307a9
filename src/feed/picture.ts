import { slotsTaken } from '../contract/status-words.ts';
import {
  AGEING_GAUGES,
  DETAIL_ROWS_MAX,
  withoutAges,
  type PoolReport,
} from '../contract/rpc/feed-rpc.ts';
import type { LeaseInfo, PoolStatus, WaiterInfo } from '../contract/status.ts';
import { instant } from '../core/words/ids.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';
import {
  groupNames,
  namesWithWaiting,
  statusOfGroups,
  groupsNeeded,
} from '../overview/all-groups.ts';
import type { GroupStatus } from '../contract/group-status.ts';
import { withMembers } from '../overview/unused-group.ts';
import { ASKED_MAX, type PoolReply, type Directory } from '../overview/pools.ts';

/** Maximum time by which reports of a pool can overtake each other in transit. */
const OVERTAKEN_MS_MAX = 60_000;

interface LastReply {
  readonly one: PoolReply<PoolReport>;
  readonly receivedAt: number;
}

/** A group with its leases and waiters, as `GET /groups/{name}/leases` and `/waiters` show them. */
export interface GroupDetail {
  readonly name: string;
  readonly leases: readonly (LeaseInfo & { readonly partition: string | null })[];
  readonly waiters: readonly (WaiterInfo & { readonly partition: string | null })[];
  readonly leases_total: number;
  readonly waiters_total: number;
  /** The group itself, so that its figures and leases are of the same moment. null if there is none of that name. */
  readonly group: GroupStatus | null;
}

/** Groups that changed since they were last shown, and names of those that are gone. */
interface Changes {
  readonly groups: readonly GroupStatus[];
  readonly gone: readonly string[];
}

/** Combines the last replies of all pools by group. It sends no requests and has no clock: its owner provides both. */
export class Picture {
  #directory: Directory;
  #pools: ReadonlyMap<string, PlacedPool> = new Map();
  #byGroup: ReadonlyMap<string, readonly PlacedPool[]> = new Map();
  readonly #known = new Map<string, LastReply>();
  /** Every group as it was last shown, as JSON without ages. */
  readonly #shown = new Map<string, string>();
  /** Groups to compare at the next call of `changes`. */
  readonly #touched = new Set<string>();
  /** Groups whose leases or waiters changed since they were last sent. */
  readonly #changedDetails = new Set<string>();

  constructor(directory: Directory) {
    this.#directory = directory;
    this.update(directory);
  }

  get directory(): Directory {
    return this.#directory;
  }

  get pools(): ReadonlyMap<string, PlacedPool> {
    return this.#pools;
  }

  poolsOf(group: string): readonly PlacedPool[] {
    return this.#byGroup.get(group) ?? [];
  }

  /**
   * Applies a new state of the directory. All groups are compared again, because the figures of idle ones change with
   * time.
   */
  update(directory: Directory): void {
    this.#directory = directory;
    const listed = directory.pools.slice(0, ASKED_MAX);
    this.#pools = new Map(listed.map((pool) => [poolKey(pool), pool]));
    this.#byGroup = Map.groupBy(listed, (pool) => pool.group);
    for (const key of this.#known.keys()) if (!this.#pools.has(key)) this.#known.delete(key);
    for (const name of [...groupNames(directory), ...this.#shown.keys()]) this.#touched.add(name);
  }

  /** Applies a pool's report, unless it is older than the last one. */
  note(one: PoolReply<PoolReport>, now: number): void {
    const { group } = one.pool;
    const key = poolKey(one.pool);
    const before = this.#known.get(key)?.one;
    if (!this.#pools.has(key) || isOlder(one, before)) return;
    this.#known.set(key, { one, receivedAt: now });
    this.#touched.add(group);
    for (const name of [...needed(one), ...needed(before)]) this.#touched.add(name);
    if (detailText(one) !== detailText(before)) this.#changedDetails.add(group);
  }

  /** Whether a pool has reported since an instant, or ever if none is given. */
  hasReport(pool: PlacedPool, since = -Infinity): boolean {
    return (this.#known.get(poolKey(pool))?.receivedAt ?? -Infinity) > since;
  }

  /** Lists the groups that changed since the last call. */
  changes(now: number): Changes {
    const names = [...this.#touched];
    this.#touched.clear();
    const all = this.#statusOf(names, now);
    const groups = all.filter((group) => {
      const news = JSON.stringify(group, withoutAges);
      if (this.#shown.get(group.name) === news) return false;
      this.#shown.set(group.name, news);
      return true;
    });
    const left = new Set(all.map(({ name }) => name));
    const gone = names.filter((name) => !left.has(name) && this.#shown.delete(name));
    return { groups, gone };
  }

  /** Lists all groups as `GET /status` does. */
  groups(now: number): GroupStatus[] {
    return this.#statusOf(namesWithWaiting(this.#directory, this.#all()), now);
  }

  /** Returns the last statuses of pools, aged to now. */
  statuses(names: readonly string[], now: number): PoolReply<PoolStatus>[] {
    return names.flatMap((name) =>
      this.poolsOf(name).flatMap((pool): PoolReply<PoolStatus>[] => {
        const known = this.#known.get(poolKey(pool));
        if (known === undefined) return [];
        const { one, receivedAt } = known;
        if ('error' in one) return [one];
        const reported = aged(one.answer.status, Math.max(0, now - receivedAt));
        return [
          { pool, answer: withMembers(reported, pool, this.#directory.config, instant(now)) },
        ];
      }),
    );
  }

  /** Lists the details that changed since the last call. */
  changedDetails(now: number): GroupDetail[] {
    const changed = [...this.#changedDetails].map((name) => this.detail(name, now));
    this.#changedDetails.clear();
    return changed;
  }

  detail(name: string, now: number): GroupDetail {
    const reported = this.poolsOf(name).flatMap((pool) => {
      const known = this.#known.get(poolKey(pool));
      if (known === undefined || !('answer' in known.one)) return [];
      const { detail } = known.one.answer;
      const sinceMs = Math.max(0, now - known.receivedAt);
      return detail === null ? [] : [{ ...detail, partition: pool.partition, sinceMs }];
    });
    const leases = reported.flatMap(({ leases: all, partition, sinceMs }) =>
      all.map((lease) => ({ ...lease, age_ms: lease.age_ms + sinceMs, partition })),
    );
    const waiters = reported.flatMap(({ waiters: all, partition, sinceMs }) =>
      all.map((waiter) => ({
        ...waiter,
        waited_ms: waiter.waited_ms + sinceMs,
        estimate_ms: estimateLeft(waiter.estimate_ms, sinceMs),
        partition,
      })),
    );
    return {
      name,
      leases: leases.toSorted((a, b) => b.age_ms - a.age_ms).slice(0, DETAIL_ROWS_MAX),
      waiters: waiters.slice(0, DETAIL_ROWS_MAX),
      leases_total: reported.reduce((sum, { leasesTotal }) => sum + leasesTotal, 0),
      waiters_total: reported.reduce((sum, { waitersTotal }) => sum + waitersTotal, 0),
      group: this.#statusOf([name], now)[0] ?? null,
    };
  }

  #statusOf(names: readonly string[], now: number): GroupStatus[] {
    return statusOfGroups(this.#directory, names, this.statuses(names, now), this.#all());
  }

  /** The last replies of all pools, which show what queued calls of a group need from other groups. */
  #all(): PoolReply<PoolStatus>[] {
    return [...this.#known.values()].map(({ one }) =>
      'error' in one ? one : { pool: one.pool, answer: one.answer.status },
    );
  }
}

/** Lists the other groups that a pool's waiters need. */
function needed(one: PoolReply<PoolReport> | undefined): string[] {
  return one === undefined || 'error' in one ? [] : groupsNeeded(one.answer.status);
}

/**
 * Returns the remaining estimate. null means that it has passed and the call is still queued as far as the hub knows.
 */
function estimateLeft(estimateMs: number | null, sinceMs: number): number | null {
  return estimateMs === null || estimateMs < sinceMs ? null : estimateMs - sinceMs;
}

function detailText(one: PoolReply<PoolReport> | undefined): string | null {
  if (one === undefined || 'error' in one || one.answer.detail === null) return null;
  return JSON.stringify(one.answer.detail, withoutAges);
}

/**
 * Whether a report is out of date. Reports of a pool may overtake each other in transit by seconds. A report that seems
 * much older is current: the wall clock was set back, and the pool uses the new time.
 */
function isOlder(one: PoolReply<PoolReport>, known: PoolReply<PoolReport> | undefined): boolean {
  if (known === undefined || !('answer' in known) || !('answer' in one)) return false;
  // A resting pool is shown with the limits of a newer configuration, although its last report is no newer.
  if (one.answer.configVersion > known.answer.configVersion) return false;
  const aheadMs = known.answer.at - one.answer.at;
  return aheadMs > 0 && aheadMs <= OVERTAKEN_MS_MAX;
}

/**
 * Ages a status. A silent pool is unchanged, except for the gauges that grow with time.
 */
function aged(status: PoolStatus, sinceMs: number): PoolStatus {
  const isQueueing = status.queued > 0;
  const isIdle = slotsTaken(status) + status.queued === 0;
  const isAgeing = { always: true, queued: isQueueing, idle: isIdle };
  const ages: Partial<Record<keyof PoolStatus, number>> = {};
  for (const { name, ages: when } of AGEING_GAUGES) {
    const ms = status[name];
    if (ms !== null && isAgeing[when]) ages[name] = ms + sinceMs;
  }
  return { ...status, ...ages } as PoolStatus;
}

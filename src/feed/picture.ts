import { DETAIL_ROWS_MAX, withoutAges, type PoolReport } from '../contract/rpc/feed-rpc.ts';
import {
  NOT_REPORTED_BEFORE,
  type LeaseInfo,
  type PoolStatus,
  type WaiterInfo,
} from '../contract/status.ts';
import { instant } from '../core/words/ids.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';
import { groupNames, namesWithWaiting, statusOfGroups } from '../overview/all-groups.ts';
import type { GroupStatus } from '../contract/admin/status-schemas.ts';
import { withMembers } from '../overview/unused-members.ts';
import { groupsNeeded } from '../overview/waiting.ts';
import { ASKED_MAX, type PoolReply, type Directory } from '../overview/pools.ts';

/** How long before an earlier report a later one may come. */
const OVERTAKEN_MS_MAX = 60_000;

/** The last reply of a pool, and when it came. */
interface LastReply {
  readonly one: PoolReply<PoolReport>;
  readonly heardAt: number;
}

/** A group with its leases and waiters, as `GET /groups/{name}/leases` and `/waiters` show them. */
export interface GroupDetail {
  readonly name: string;
  readonly leases: readonly (LeaseInfo & { readonly partition: string | null })[];
  readonly waiters: readonly (WaiterInfo & { readonly partition: string | null })[];
  readonly leases_total: number;
  readonly waiters_total: number;
  /** The group itself, so that its figures and its leases are of one moment. Null: there is none of that name. */
  readonly group: GroupStatus | null;
}

/** The groups that are not any more as they were shown. */
interface Changes {
  readonly groups: readonly GroupStatus[];
  readonly gone: readonly string[];
}

/**
 * The last replies of all pools, put together by groups. It asks nobody and keeps no time: both come from
 * whoever holds it.
 */
export class Picture {
  #directory: Directory;
  /** The listed pools by their keys. */
  #pools: ReadonlyMap<string, PlacedPool> = new Map();
  #byGroup: ReadonlyMap<string, readonly PlacedPool[]> = new Map();
  readonly #known = new Map<string, LastReply>();
  /** Every group as it was shown last, without ages. */
  readonly #shown = new Map<string, string>();
  /** Groups to look at when changes are asked for. */
  readonly #touched = new Set<string>();
  /** Groups whose leases or waiters are not as they were told. */
  readonly #changedDetails = new Set<string>();

  constructor(directory: Directory) {
    this.#directory = directory;
    this.turn(directory);
  }

  get directory(): Directory {
    return this.#directory;
  }

  /** The listed pools by their keys. */
  get pools(): ReadonlyMap<string, PlacedPool> {
    return this.#pools;
  }

  poolsOf(group: string): readonly PlacedPool[] {
    return this.#byGroup.get(group) ?? [];
  }

  /** Takes over what the directory says now. Every group is looked at again: time passes for idle ones. */
  turn(directory: Directory): void {
    this.#directory = directory;
    const listed = directory.pools.slice(0, ASKED_MAX);
    this.#pools = new Map(listed.map((pool) => [poolKey(pool), pool]));
    this.#byGroup = Map.groupBy(listed, (pool) => pool.group);
    for (const key of this.#known.keys()) if (!this.#pools.has(key)) this.#known.delete(key);
    for (const name of [...groupNames(directory), ...this.#shown.keys()]) this.#touched.add(name);
  }

  /** Takes what a pool says. What is older than what is known changes nothing. */
  note(one: PoolReply<PoolReport>, now: number): void {
    const { group } = one.pool;
    const key = poolKey(one.pool);
    const before = this.#known.get(key)?.one;
    if (!this.#pools.has(key) || isOlder(one, before)) return;
    this.#known.set(key, { one, heardAt: now });
    this.#touched.add(group);
    for (const name of [...needed(one), ...needed(before)]) this.#touched.add(name);
    if (detailNews(one) !== detailNews(before)) this.#changedDetails.add(group);
  }

  /** Whether a pool has said something since then, or, without an instant, ever. */
  hasHeard(pool: PlacedPool, since = -Infinity): boolean {
    return (this.#known.get(poolKey(pool))?.heardAt ?? -Infinity) > since;
  }

  /** Lists what changed since this was asked last. */
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

  /** Lists all groups, as `GET /status` tells of them. */
  groups(now: number): GroupStatus[] {
    return this.#statusOf(namesWithWaiting(this.#directory, this.#all()), now);
  }

  /** Tells what the pools said of themselves, as if they said it now. */
  statuses(names: readonly string[], now: number): PoolReply<PoolStatus>[] {
    return names.flatMap((name) =>
      this.poolsOf(name).flatMap((pool): PoolReply<PoolStatus>[] => {
        const known = this.#known.get(poolKey(pool));
        if (known === undefined) return [];
        const { one, heardAt } = known;
        if ('error' in one) return [one];
        const reported = aged(one.answer.status, Math.max(0, now - heardAt));
        return [
          { pool, answer: withMembers(reported, pool, this.#directory.config, instant(now)) },
        ];
      }),
    );
  }

  /** Lists the details that changed since this was asked last. */
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
      const sinceMs = Math.max(0, now - known.heardAt);
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

  /** The last replies of all pools, for what calls of one group wait for in others. */
  #all(): PoolReply<PoolStatus>[] {
    return [...this.#known.values()].map(({ one }) =>
      'error' in one ? one : { pool: one.pool, answer: one.answer.status },
    );
  }
}

/** Lists the groups that waiters of a pool need besides it. */
function needed(one: PoolReply<PoolReport> | undefined): string[] {
  return one === undefined || 'error' in one ? [] : groupsNeeded(one.answer.status);
}

/** The estimate that is left. Null: it is over, and the call still waits as far as is known. */
function estimateLeft(estimateMs: number | null, sinceMs: number): number | null {
  return estimateMs === null || estimateMs < sinceMs ? null : estimateMs - sinceMs;
}

function detailNews(one: PoolReply<PoolReport> | undefined): string | null {
  if (one === undefined || 'error' in one || one.answer.detail === null) return null;
  return JSON.stringify(one.answer.detail, withoutAges);
}

/**
 * Tells whether a report is out of date: reports of a pool may overtake each other on their way, by seconds.
 * One from longer ago is news: the wall clock was set back, and the pool has begun anew by it.
 */
function isOlder(one: PoolReply<PoolReport>, known: PoolReply<PoolReport> | undefined): boolean {
  if (known === undefined || !('answer' in known) || !('answer' in one)) return false;
  // A pool at rest is shown with the limits of a newer configuration, although its last report is no newer.
  if (one.answer.configVersion > known.answer.configVersion) return false;
  const aheadMs = known.answer.at - one.answer.at;
  return aheadMs > 0 && aheadMs <= OVERTAKEN_MS_MAX;
}

/** Ages a status: a pool that says nothing goes on as it was, its waiters wait longer, or it is idle for longer. */
function aged(status: PoolStatus, sinceMs: number): PoolStatus {
  const {
    in_use,
    cooling,
    unclaimed: orphaned,
    lent,
    queued,
    oldest_wait_ms,
    idle_ms,
  } = {
    ...NOT_REPORTED_BEFORE,
    ...status,
  };
  const { stalled_ms: stalledMs } = status;
  return {
    ...status,
    ...(typeof stalledMs === 'number' && { stalled_ms: stalledMs + sinceMs }),
    oldest_wait_ms: queued > 0 ? oldest_wait_ms + sinceMs : oldest_wait_ms,
    idle_ms: in_use + cooling + orphaned + lent + queued === 0 ? idle_ms + sinceMs : idle_ms,
  };
}

import type { LimitsSeenStatus, PoolStatus } from '../contract/status.ts';

/** Joins the limits that pools observed. For each upstream and model the latest report counts. */
export function joinLimitsSeen(pools: readonly PoolStatus[]): Pick<PoolStatus, 'limits_seen'> {
  const all = pools.flatMap(({ limits_seen: seen }) => seen ?? []);
  if (all.length === 0) return {};
  const latest = new Map<string, LimitsSeenStatus>();
  for (const one of all.toSorted((a, b) => (a.at < b.at ? -1 : 1))) {
    latest.set(`${one.upstream} ${one.model ?? ''}`, one);
  }
  return { limits_seen: [...latest.values()] };
}

import type { TenantTimes } from '../contract/history.ts';

/** Tenants that a point of one minute names of each kind, and those that a point joined of several does. */
export const TENANTS_OF_MINUTE = 5;
const TENANTS_JOINED = 10;

/** Joins the tenants of two points, over time or over pools. */
export function joinTenants(a: TenantTimes, b: TenantTimes): TenantTimes {
  const joined = new Map(a);
  for (const [tenant, ms] of b) joined.set(tenant, (joined.get(tenant) ?? 0) + ms);
  return longest(joined, TENANTS_JOINED);
}

/** Lists the tenants with the most time, the longest first. Those that took none are left out. */
export function longest(times: Iterable<readonly [string, number]>, count: number): TenantTimes {
  return [...times]
    .filter(([, ms]) => ms > 0)
    .toSorted(([a, aMs], [b, bMs]) => bMs - aMs || (a < b ? -1 : 1))
    .slice(0, count);
}

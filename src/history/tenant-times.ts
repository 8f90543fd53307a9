import type { TenantTimes } from '../contract/history.ts';

/** Maximum tenants of each kind in a point of one minute and in a joined point. */
export const TENANTS_OF_MINUTE = 5;
const TENANTS_JOINED = 10;

export function joinTenants(a: TenantTimes, b: TenantTimes): TenantTimes {
  const joined = new Map(a);
  for (const [tenant, ms] of b) joined.set(tenant, (joined.get(tenant) ?? 0) + ms);
  return longest(joined, TENANTS_JOINED);
}

/** Lists the tenants with the most time first. Tenants without any are left out. */
export function longest(times: Iterable<readonly [string, number]>, count: number): TenantTimes {
  return [...times]
    .filter(([, ms]) => ms > 0)
    .toSorted(([a, aMs], [b, bMs]) => bMs - aMs || (a < b ? -1 : 1))
    .slice(0, count);
}

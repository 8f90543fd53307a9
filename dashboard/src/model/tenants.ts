import type { Detail } from './status.ts';

/** Share of one tenant in a group. */
interface TenantShare {
  readonly tenant: string;
  readonly inUse: number;
  readonly waiting: number;
}

/** Maximum of tenants that have a colour: more could not be told apart. */
const TENANTS_MAX = 8;

/** The tenants with the most slots and waiters, and how many others there are. */
export function tenantsOf(detail: Detail | null): {
  readonly most: readonly TenantShare[];
  readonly others: number;
} {
  const shares = new Map<string, TenantShare>();
  const add = (tenant: string, inUse: number, waiting: number): void => {
    const had = shares.get(tenant) ?? { tenant, inUse: 0, waiting: 0 };
    shares.set(tenant, { tenant, inUse: had.inUse + inUse, waiting: had.waiting + waiting });
  };
  for (const { tenant, slots, state } of detail?.leases ?? []) {
    if (state !== 'cooling') add(tenant, slots, 0);
  }
  for (const { tenant } of detail?.waiters ?? []) add(tenant, 0, 1);
  const most = [...shares.values()]
    .toSorted((a, b) => b.inUse + b.waiting - a.inUse - a.waiting)
    .slice(0, TENANTS_MAX)
    // By name, so that a legend that changes every second does not change its order.
    .toSorted((a, b) => a.tenant.localeCompare(b.tenant));
  return { most, others: shares.size - most.length };
}

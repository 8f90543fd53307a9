import type { Detail } from './status.ts';

interface TenantShare {
  readonly tenant: string;
  readonly inUse: number;
  readonly waiting: number;
}

/** Maximum of tenants in a legend. More colours could not be distinguished. */
const TENANTS_MAX = 8;

/** Tenants with the most slots and queued calls, and the number of other tenants. */
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
    // Sorted by name, so that the legend keeps its order while numbers change.
    .toSorted((a, b) => a.tenant.localeCompare(b.tenant));
  return { most, others: shares.size - most.length };
}

import type { LeaseInfo, PoolStatus } from '../contract/group-rpc.ts';
import type { InstantMs } from '../core/ids.ts';
import type { GroupState } from '../core/state.ts';
import { limitOf, type Definition, type PoolIdentity } from './definition.ts';

/** What `status` shows of one pool. */
export function poolStatus(
  identity: PoolIdentity,
  definition: Definition,
  state: GroupState,
  passedUnlimited: number,
  now: InstantMs,
): PoolStatus {
  let cooling = 0;
  for (const lease of state.leases.values()) if (lease.phase === 'cooling') cooling += 1;
  const oldest = state.queue.line[0]?.ticket.enqueuedAt ?? now;
  return {
    ...identity,
    limit: limitOf(definition),
    in_use: state.leases.size - cooling,
    cooling,
    queued: state.queue.line.length,
    oldest_wait_ms: Math.max(0, Math.round(now - oldest)),
    paused: state.settings.paused,
    paused_until: null,
    granted_total: state.totals.granted,
    rejected_total: { ...state.totals.rejected },
    expired_total: state.totals.expired,
    resurrected_total: state.totals.resurrected,
    passed_unlimited_total: passedUnlimited,
  };
}

/** The leases of one pool, oldest first. */
export function leaseInfos(state: GroupState, now: InstantMs): LeaseInfo[] {
  return [...state.leases.values()]
    .toSorted((a, b) => a.grantedAt - b.grantedAt)
    .map((lease) => ({
      id: lease.id,
      ...lease.holder,
      granted_at: new Date(lease.grantedAt).toISOString(),
      age_ms: now - lease.grantedAt,
      expires_at: new Date(lease.until).toISOString(),
      state: lease.phase,
    }));
}

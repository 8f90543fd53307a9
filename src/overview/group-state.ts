import type { PoolStatus } from '../contract/status.ts';
import type { GroupStatus } from '../contract/admin/status-schemas.ts';
import { isHolding } from '../routing/scopes-shown.ts';

type Gauges = Pick<PoolStatus, 'limit' | 'in_use' | 'cooling' | 'unclaimed' | 'lent' | 'queued'>;

type Told = Pick<
  GroupStatus,
  | 'in_use'
  | 'queued'
  | 'breaker'
  | 'paused'
  | 'paused_until'
  | 'draining'
  | 'dry_run'
  | 'budget_spent'
  | 'rate_used_up'
  | 'about'
  | 'scopes'
> & { readonly error?: string };

/** Picks the word for what is most worth knowing of a group at this moment. */
export function stateOf(group: Told, pools: readonly Gauges[]): GroupStatus['state'] {
  if (group.error !== undefined && group.in_use + group.queued === 0) return 'unreachable';
  const isOfAll = group.about === undefined;
  if (group.breaker !== 'closed' && isOfAll) return 'broken';
  if (group.paused) return 'paused';
  if (group.draining) return 'draining';
  if (group.dry_run) return 'dry run';
  if (group.budget_spent !== null) return 'budget spent';
  if (group.paused_until !== null && isOfAll) return 'paused';
  if (isFull(pools)) return 'full';
  if (isPartlyPaused(group)) return 'partly paused';
  return group.rate_used_up === null ? 'flowing' : 'rate limited';
}

/** Whether only calls of some models, tiers or keys are stopped. */
function isPartlyPaused({ about, breaker, paused_until: until, scopes = [] }: Told): boolean {
  const isOwn = about !== undefined && (until !== null || breaker !== 'closed');
  return isOwn || scopes.some(isHolding);
}

/** Tells whether all slots are taken: of all pools, or of one where calls wait for them. */
function isFull(pools: readonly Gauges[]): boolean {
  if (pools.some((pool) => pool.queued > 0 && freeOf(pool) <= 0)) return true;
  const isAnyUsed = pools.some((pool) => takenOf(pool) > 0);
  return isAnyUsed && pools.every((pool) => freeOf(pool) <= 0);
}

function freeOf(pool: Gauges): number {
  return (pool.limit.effective ?? Infinity) - takenOf(pool);
}

function takenOf({ in_use, cooling, unclaimed, lent }: Gauges): number {
  return in_use + cooling + unclaimed + lent;
}

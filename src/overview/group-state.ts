import { slotsTaken } from '../contract/gauges.ts';
import type { Lately, PoolStatus } from '../contract/status.ts';
import type { GroupStatus } from '../contract/admin/status-schemas.ts';
import { isHolding } from '../routing/scopes-shown.ts';

type StateGauges = Pick<
  PoolStatus,
  'limit' | 'in_use' | 'cooling' | 'unclaimed' | 'lent' | 'queued'
>;

type StateFacts = Pick<
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
  | 'lately'
> & { readonly error?: string };

/** Returns the most important state of a group. */
export function stateOf(group: StateFacts, pools: readonly StateGauges[]): GroupStatus['state'] {
  if (group.error !== undefined && group.in_use + group.queued === 0) return 'unreachable';
  const isOfAll = group.about === undefined;
  if (group.breaker !== 'closed' && isOfAll) return 'broken';
  if (group.paused) return 'paused';
  if (group.draining) return 'draining';
  if (group.dry_run) return 'dry run';
  if (group.budget_spent !== null) return 'budget spent';
  if (group.paused_until !== null && isOfAll) return 'paused';
  const failure = failureOf(group.lately);
  if (failure?.isPlain === true) return failure.state;
  if (isFull(pools)) return 'full';
  if (isPartlyPaused(group)) return 'partly paused';
  if (failure !== null) return failure.state;
  return group.rate_used_up === null ? 'flowing' : 'rate limited';
}

/** Failures in a row that are more important than `full`. Fewer may come from one client. */
const PLAIN_FAILURES = 5;

/** Refusals that mean that an upstream is broken or unreachable. */
const FAULTS: ReadonlySet<string> = new Set(['error']);

interface FailureState {
  readonly state: GroupStatus['state'];
  readonly isPlain: boolean;
}

/** Returns the failure state of a group that serves nothing. null if it serves calls or has none. */
function failureOf(lately: Lately | undefined): FailureState | null {
  if (lately?.is_failing !== true) return null;
  const { refusals, rejected, ended, answered_errors: errors = {} } = lately;
  const faults = sumOf(refusals, (kind) => FAULTS.has(kind));
  const answered = sumOf(errors, () => true);
  const refused = sumOf(refusals, (kind) => !FAULTS.has(kind)) + answered;
  const rejections = sumOf(rejected, () => true);
  const isRefused = refused > 0 && refused >= Math.max(rejections, faults);
  const failures = faults + refused + rejections + (ended['cancelled'] ?? 0);
  return {
    state: isRefused ? 'refused by upstream' : 'nothing served',
    isPlain: failures >= PLAIN_FAILURES,
  };
}

function sumOf(tally: Lately['refusals'], isMeant: (name: string) => boolean): number {
  return Object.entries(tally).reduce(
    (sum, [name, count]) => (isMeant(name) ? sum + count : sum),
    0,
  );
}

/** Whether only calls of some models, tiers or keys are stopped. */
function isPartlyPaused({ about, breaker, paused_until: until, scopes = [] }: StateFacts): boolean {
  const isOwn = about !== undefined && (until !== null || breaker !== 'closed');
  return isOwn || scopes.some(isHolding);
}

/** Whether the slots of all pools are in use, or those of one pool with queued calls. */
function isFull(pools: readonly StateGauges[]): boolean {
  if (pools.some((pool) => pool.queued > 0 && freeOf(pool) <= 0)) return true;
  const isAnyUsed = pools.some((pool) => slotsTaken(pool) > 0);
  return isAnyUsed && pools.every((pool) => freeOf(pool) <= 0);
}

function freeOf(pool: StateGauges): number {
  return (pool.limit.effective ?? Infinity) - slotsTaken(pool);
}

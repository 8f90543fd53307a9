import type { WaitCause } from '../core/parts/decision-log.ts';
import type { WaiterInfo } from './status.ts';

/**
 * The words in which lists show a state: states of groups, rules of the attention list, wait reasons. Free of schemas,
 * because the dashboard loads it at its start.
 */

/** The state of a group in a few words, the worst first. */
export const GROUP_STATES = [
  'unreachable',
  'broken',
  'budget spent',
  'paused',
  'refused by upstream',
  'nothing served',
  'full',
  'partly paused',
  'rate limited',
  'draining',
  'dry run',
  'flowing',
] as const;

/**
 * Rules of the attention list, the worst first. `docs/alerts.md` describes each condition and its fix.
 *
 * - `object_unreachable`: a pool of the group does not respond.
 * - `refused_by_upstream`: the upstream refuses every call.
 * - `nothing_served`: no call was served for 5 minutes while calls failed for any reason.
 * - `breaker_open`: the upstream failed so often that the breaker stops calls.
 * - `secret_missing`: the secret of an upstream, member or webhook, or `METRICS_TOKEN`, is missing or unusable.
 * - `price_missing`, `key_refused`, `model_refused`: Headgate rejects calls because a price, key or model is missing.
 * - `calls_refused`: Headgate rejects calls for another reason that an operator can fix.
 * - `budget_spent`: a budget is spent, or has no room for a call.
 * - `egress_refused`: an upstream refuses calls from the Worker's location.
 * - `quota_exhausted`: an upstream reports that the account has no quota left.
 * - `member_ejected`: a member gets no calls, because its upstream refused its key, account or origin.
 * - `day_limit_spent`: a daily limit of requests or tokens is used up.
 * - `paused`: an operator paused the group.
 * - `upstream_pause`: the upstream asked for a long wait.
 * - `partly_stopped`: the breaker or an upstream pause stops some calls of the group.
 * - `no_slots`: calls are queued, and the limit is 0.
 * - `slots_orphaned`: calls from before a reset of the pool may still hold slots.
 * - `slots_stuck`: slots were reclaimed because their holders were gone.
 * - `passed_unlimited`: calls passed without a slot because the pool was unreachable.
 * - `queue_old`: calls wait much longer than usual.
 * - `queue_growing`: the queue has grown for minutes.
 * - `budget_near`: 80 % of a budget is spent.
 * - `invariant_violated`: Headgate violated its own invariants.
 * - `config_warning`: a warning of the configuration still holds.
 */
export const ATTENTION_RULES = [
  'object_unreachable',
  'refused_by_upstream',
  'nothing_served',
  'breaker_open',
  'secret_missing',
  'price_missing',
  'key_refused',
  'model_refused',
  'calls_refused',
  'budget_spent',
  'egress_refused',
  'quota_exhausted',
  'member_ejected',
  'day_limit_spent',
  'paused',
  'upstream_pause',
  'partly_stopped',
  'no_slots',
  'slots_orphaned',
  'slots_stuck',
  'passed_unlimited',
  'queue_old',
  'queue_growing',
  'budget_near',
  'invariant_violated',
  'config_warning',
] as const;

export type AttentionRule = (typeof ATTENTION_RULES)[number];

/**
 * Slots of a pool or group that are not free.
 *
 * @param pool the fields of its status
 */
export function slotsTaken(pool: {
  readonly in_use: number;
  readonly cooling: number;
  readonly unclaimed: number;
  readonly lent: number;
}): number {
  return pool.in_use + pool.cooling + pool.unclaimed + pool.lent;
}

/** Wait reasons in a few words, for lists. They complete "waits for". */
const WORDS: Readonly<Record<WaitCause, string>> = {
  operator_pause: 'an operator, who paused it',
  upstream_pause: 'the upstream, which backs off',
  breaker: 'the breaker',
  members_out: 'a member (all are ejected)',
  settling: 'the end of the restart',
  cap: 'its own limit',
  slots: 'a slot',
  rates: 'a rate limit',
  member: 'the member it belongs to',
  order: 'its turn',
  elsewhere: 'another group',
};

const CAP_WORDS: Readonly<Record<NonNullable<WaiterInfo['cap']>, string>> = {
  tenant: 'the limit of its tenant',
  agent: 'the limit of its agent',
  probe: 'a probe of the upstream',
};

/**
 * Describes what a queued call waits for.
 *
 * @param about the calls that the reason applies to, in words. Absent if they are all calls.
 */
export function waitWords(
  { waits_for: cause, cap, needs = [] }: Pick<WaiterInfo, 'waits_for' | 'cap' | 'needs'>,
  about?: string,
): string {
  const others = needs.map((pool) => pool.split('#', 1)[0]).join(', ');
  const what = cap === undefined ? WORDS[cause] : CAP_WORDS[cap];
  if (cause === 'elsewhere' && others !== '') return `a slot in ${others}`;
  const ofSome = about === undefined ? '' : ` (${about})`;
  return others === '' ? what + ofSome : `${what}${ofSome}, and ${others}`;
}

/** Describes how many calls of a group wait in other groups. Empty if there are none. */
export function elsewhereWords(
  elsewhere: readonly { readonly group: string; readonly calls: number }[] = [],
): string {
  const places = elsewhere.map(({ group, calls }) => `${calls} in ${group}`);
  const calls = elsewhere.reduce((sum, one) => sum + one.calls, 0);
  if (calls === 0) return '';
  return `${calls === 1 ? '1 call of this group waits' : `${calls} calls of this group wait`} elsewhere: ${places.join(', ')}`;
}

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

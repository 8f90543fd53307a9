/**
 * Rules for what needs a person, the worst first. `docs/operations.md` says what each one means, and what to do.
 *
 * - `object_unreachable`: a pool of the group does not answer.
 * - `refused_by_upstream`: the upstream refuses every call.
 * - `nothing_served`: no call was served for 5 minutes while calls failed, whatever the cause.
 * - `breaker_open`: the upstream failed so often that its breaker stops calls.
 * - `secret_missing`: the secret of an upstream, member or webhook, or `METRICS_TOKEN`, cannot be used.
 * - `price_missing`, `key_refused`, `model_refused`: Headgate refuses calls because a price, key or model is missing.
 * - `calls_refused`: Headgate refuses calls for another reason that an operator can mend.
 * - `budget_spent`: a budget is spent, or has no room for a call.
 * - `egress_refused`: an upstream refuses calls from where the Worker runs.
 * - `quota_exhausted`: an upstream says that the account has no quota left.
 * - `member_ejected`: a member gets no calls, because its upstream refused its key, account or origin.
 * - `day_limit_spent`: a limit of requests or tokens a day is used up.
 * - `paused`: an operator paused the group.
 * - `upstream_pause`: the upstream asked for a wait that is not over soon.
 * - `partly_stopped`: the same for some calls of the group.
 * - `no_slots`: calls wait, and the limit is 0.
 * - `slots_orphaned`: slots may be held by calls from before a reset of the pool.
 * - `slots_stuck`: slots were taken back, because their holders were gone.
 * - `passed_unlimited`: calls passed without a slot, because the pool was out of reach.
 * - `queue_old`: calls wait much longer than usual.
 * - `queue_growing`: the queue grew for minutes.
 * - `budget_near`: 80 % of a budget is spent.
 * - `invariant_violated`: Headgate broke one of its own promises.
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

import type { Family } from './exposition.ts';

const gauge = (name: string, help: string, join: Family['join'] = 'sum') =>
  ({ name: `headgate_${name}`, type: 'gauge', help, join }) as const;

const counter = (name: string, help: string) =>
  ({ name: `headgate_${name}`, type: 'counter', help, join: 'sum' }) as const;

const histogram = (name: string, help: string) =>
  ({ name: `headgate_${name}`, type: 'histogram', help, join: 'sum' }) as const;

export const CONFIG_VERSION = gauge('config_version', 'Version of the configuration.');
export const POOLS = gauge('pools', 'Pools that were queried.');
export const POOLS_LEFT_OUT = gauge('pools_left_out', 'Pools beyond the limit of one scrape.');
export const ATTENTION = gauge('attention', 'Entries of the attention list, by rule.');
export const POOL_UP = gauge('pool_up', 'Whether the pool responded.', 'min');

export const SLOTS_LIMIT = gauge(
  'slots_limit',
  'Slots that may be in use, as configured or learned. Limits learned for only some calls of a configured group do not count.',
);
export const SLOTS_LIMIT_CONFIGURED = gauge('slots_limit_configured', 'Configured slots.');
export const SLOTS_IN_USE = gauge('slots_in_use', 'Slots held by calls.');
export const SLOTS_BY_KIND = gauge(
  'slots_in_use_by_kind',
  'Slots in use by holders other than proxied calls, by kind.',
);
export const SLOTS_COOLING = gauge('slots_cooling', 'Slots in cool-down after a call.');
export const COOLDOWN = gauge(
  'cooldown_seconds',
  'Time for which a slot stays unavailable after a successful call, as configured or learned.',
  'max',
);
export const SLOTS_ORPHANED = gauge(
  'slots_unclaimed',
  'Orphaned slots: calls from before the last reset may still hold them.',
);
export const SLOTS_PREFETCHED = gauge(
  'slots_lent',
  'Prefetched slots that Workers hold without a call.',
);
export const QUEUE_LENGTH = gauge('queue_length', 'Queued calls, by lane.');
export const QUEUE_REASONS = gauge(
  'queue_waits_for',
  'Queued calls, by current wait reason. Counts the first 2,000 of each pool.',
);
export const QUEUE_OLDEST = gauge(
  'queue_oldest_wait_seconds',
  'Age of the oldest queued call.',
  'max',
);
export const PAUSED = gauge(
  'paused',
  'Whether all calls are paused, by the cause in `by`. Pauses of only some calls count in headgate_scopes_stopped.',
  'max',
);
export const BREAKER = gauge(
  'breaker_state',
  'Whether the breaker of all calls is in this state. Breakers of only some calls count in headgate_scopes_stopped.',
);
export const SCOPES_STOPPED = gauge(
  'scopes_stopped',
  'Scopes whose calls are held back, by kind of scope and cause.',
);
export const SCOPE_QUEUED = gauge(
  'queue_held_by_scope',
  'Queued calls that a scope holds back, by kind of scope.',
);
export const RATE_LIMIT = gauge('rate_limit', 'Limit of requests or tokens.');
export const RATE_LEFT = gauge('rate_left', 'Requests or tokens available now under a limit.');
export const SPENT = gauge('budget_spent_usd', 'Spend in the current UTC period.');
export const BUDGET = gauge('budget_limit_usd', 'Budget of a UTC period.');
export const RESERVED = gauge('budget_reserved_usd', 'Estimated cost of calls in flight.');

export const MEMBER_LIMIT = gauge('member_slots_limit', 'Slots that may be in use at a member.');
export const MEMBER_IN_USE = gauge('member_slots_in_use', 'Slots held by calls at a member.');
export const MEMBER_OUT = gauge(
  'member_out',
  'Whether a member is ejected. Disabled members do not count.',
  'max',
);
export const MEMBER_GRANTED = counter(
  'member_grants',
  'Calls that were granted slots at a member.',
);
export const MEMBER_REFUSED = counter(
  'member_refusals',
  'Calls that the upstream of a member refused.',
);
export const MEMBER_TOKENS = counter('member_tokens', 'Tokens of the calls at a member.');
export const MEMBER_COST = counter('member_cost_usd', 'Cost of the calls at a member.');
export const AFFINITY = counter('affinity', 'Calls with affinity to a member, by outcome.');

export const GRANTED = counter('grants', 'Calls that were granted slots.');
export const GRANTED_AGAIN = counter('regrants', 'Grants to further attempts of a call.');
export const REJECTIONS = counter('rejections', 'Calls that groups rejected, by reason.');
export const REFUSED = counter(
  'refusals',
  'Calls that Headgate rejected, by reason, in groups or before they reached one.',
);
export const LEFT = counter('departures', 'Queued calls whose callers disconnected.');
export const MOVED = counter('moves', 'Queued calls that were routed again.');
export const ENDED = counter('leases_ended', 'Leases that ended, by outcome.');
export const CUT = counter('calls_cut', 'Calls that Headgate cut, by reason.');
export const RESURRECTED = counter(
  'leases_resurrected',
  'Expired leases that were resumed, and first calls of new keys of an account.',
);
export const REFUSALS = counter('upstream_refusals', 'Refusals of the upstream, by kind.');
export const REPORTS = counter('lease_reports', 'Refusals reported by lease holders, by outcome.');
export const TOKENS = counter('tokens', 'Tokens of the calls, as limits count them.');
export const COST = counter('cost_usd', 'Cost of the calls.');
export const PASSED = counter(
  'passed_unlimited',
  'Calls that passed without a slot while the pool was unreachable.',
);
export const WOULD_WAIT = counter(
  'dry_run_would_wait',
  'Calls in a dry run that would have waited.',
);
export const VIOLATIONS = counter(
  'invariant_violations',
  'Violated invariants of Headgate, by name. Any value above 0 is a bug.',
);
export const WARNINGS = counter('warnings', 'Warnings, by kind.');

export const WAIT = histogram('wait_seconds', 'Queueing time of granted calls.');
export const HOLD = histogram('hold_seconds', 'Time from the grant of a lease to its end.');

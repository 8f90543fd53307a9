import type { Family } from './exposition.ts';

/** Every metric of Headgate. `docs/metrics.md` lists them. */

const gauge = (name: string, help: string, join: Family['join'] = 'sum') =>
  ({ name: `headgate_${name}`, type: 'gauge', help, join }) as const;

const counter = (name: string, help: string) =>
  ({ name: `headgate_${name}`, type: 'counter', help, join: 'sum' }) as const;

const histogram = (name: string, help: string) =>
  ({ name: `headgate_${name}`, type: 'histogram', help, join: 'sum' }) as const;

export const CONFIG_VERSION = gauge('config_version', 'Version of the configuration.');
export const POOLS = gauge('pools', 'Pools that were asked.');
export const POOLS_LEFT_OUT = gauge('pools_left_out', 'Pools beyond the bound of one scrape.');
export const ATTENTION = gauge('attention', 'Entries of the list of what needs a person, by rule.');
export const POOL_UP = gauge('pool_up', 'Whether the pool answered.', 'min');

export const SLOTS_LIMIT = gauge(
  'slots_limit',
  'Slots that may be in use, as configured or learned. A limit that was learned for some calls of a configured group does not count.',
);
export const SLOTS_LIMIT_CONFIGURED = gauge('slots_limit_configured', 'Slots as configured.');
export const SLOTS_IN_USE = gauge('slots_in_use', 'Slots held by calls.');
export const SLOTS_BY_KIND = gauge(
  'slots_in_use_by_kind',
  'Slots held by what is no call, by its kind.',
);
export const SLOTS_COOLING = gauge(
  'slots_cooling',
  'Slots that stay down for a moment after a call.',
);
export const COOLDOWN = gauge(
  'cooldown_seconds',
  'How long a slot stays down after a call that ended well, as configured or learned.',
  'max',
);
export const SLOTS_ORPHANED = gauge(
  'slots_unclaimed',
  'Slots that may be held by calls of before the last reset.',
);
export const SLOTS_PREFETCHED = gauge(
  'slots_lent',
  'Slots that isolates were lent and on which no call runs.',
);
export const QUEUE_LENGTH = gauge('queue_length', 'Calls that wait, by lane.');
export const QUEUE_REASONS = gauge(
  'queue_waits_for',
  'Calls that wait, by what each waits for now; of each pool the first 2,000.',
);
export const QUEUE_OLDEST = gauge(
  'queue_oldest_wait_seconds',
  'How long the oldest waiting call has waited.',
  'max',
);
export const PAUSED = gauge(
  'paused',
  'Whether all calls are stopped, by the cause in `by`. Stops of only some calls count in headgate_scopes_stopped.',
  'max',
);
export const BREAKER = gauge(
  'breaker_state',
  'Whether the breaker of all calls is in this state. A breaker of some calls only counts in headgate_scopes_stopped.',
);
export const SCOPES_STOPPED = gauge(
  'scopes_stopped',
  'Scopes whose calls are held, by what the scope names and by cause.',
);
export const SCOPE_QUEUED = gauge(
  'queue_held_by_scope',
  'Queued calls that a scope holds, by what the scope names.',
);
export const RATE_LIMIT = gauge('rate_limit', 'A limit of requests or tokens.');
export const RATE_LEFT = gauge('rate_left', 'What may go at once under a limit.');
export const SPENT = gauge('budget_spent_usd', 'Spent in the present period of UTC.');
export const BUDGET = gauge('budget_limit_usd', 'Budget of a period of UTC.');
export const RESERVED = gauge('budget_reserved_usd', 'Set aside for calls in flight.');

export const MEMBER_LIMIT = gauge('member_slots_limit', 'Slots that may be in use at a member.');
export const MEMBER_IN_USE = gauge('member_slots_in_use', 'Slots held by calls at a member.');
export const MEMBER_OUT = gauge(
  'member_out',
  'Whether a refusal took a member out. One that is switched off is not.',
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
export const AFFINITY = counter(
  'affinity',
  'Calls that belong to a member, by what became of them.',
);

export const GRANTED = counter('grants', 'Calls that were granted slots.');
export const GRANTED_AGAIN = counter('regrants', 'Grants to another attempt of a call.');
export const REJECTIONS = counter('rejections', 'Calls that were refused, by reason.');
export const REFUSED = counter(
  'refusals',
  'Calls that Headgate itself refused, by reason, whether a group did or not.',
);
export const LEFT = counter('departures', 'Callers that left the queue by themselves.');
export const MOVED = counter('moves', 'Waiting calls that were routed again.');
export const ENDED = counter('leases_ended', 'Leases that ended, by outcome.');
export const CUT = counter('calls_cut', 'Calls that Headgate cut short, by reason.');
export const RESURRECTED = counter('leases_resurrected', 'Lapsed leases that were taken up again.');
export const REFUSALS = counter('upstream_refusals', 'Refusals of the upstream, by kind.');
export const REPORTS = counter('lease_reports', 'Refusals reported by lease holders, by outcome.');
export const TOKENS = counter('tokens', 'Tokens as limits count them.');
export const COST = counter('cost_usd', 'Cost of the calls.');
export const PASSED = counter(
  'passed_unlimited',
  'Calls that passed while the pool was unreachable.',
);
export const WOULD_WAIT = counter('dry_run_would_wait', 'Calls that a dry run would have held up.');
export const VIOLATIONS = counter(
  'invariant_violations',
  'Promises of Headgate that it broke, by name. Anything but 0 is a mistake in it.',
);
export const WARNINGS = counter('warnings', 'Warnings, by kind.');

export const WAIT = histogram('wait_seconds', 'Time that granted calls stood in the queue.');
export const HOLD = histogram('hold_seconds', 'Time from the grant of a lease to its end.');

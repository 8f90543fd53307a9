import { counter, gauge, histogram } from '../../contract/metric.ts';

// Metrics that are not the value of one row of src/contract/gauges.ts.

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
export const RATE_LIMIT = gauge('rate_limit', 'Limit of requests or tokens.');
export const RATE_LEFT = gauge('rate_left', 'Requests or tokens available now under a limit.');
export const SPENT = gauge('budget_spent_usd', 'Spend in the current UTC period.');
export const BUDGET = gauge('budget_limit_usd', 'Budget of a UTC period.');
export const RESERVED = gauge('budget_reserved_usd', 'Estimated cost of calls in flight.');

export const MEMBER_LIMIT = gauge('member_slots_limit', 'Slots that may be in use at a member.');
export const MEMBER_OUT = gauge(
  'member_out',
  'Whether a member is ejected. Disabled members do not count.',
  'max',
);
export const AFFINITY = counter('affinity', 'Calls with affinity to a member, by outcome.');

export const REFUSED = counter(
  'refusals',
  'Calls that Headgate rejected, by reason, in groups or before they reached one.',
);

export const WAIT = histogram('wait_seconds', 'Queueing time of granted calls.');
export const HOLD = histogram('hold_seconds', 'Time from the grant of a lease to its end.');

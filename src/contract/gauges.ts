import type { MemberTotals } from '../core/member.ts';
import type { Totals } from '../core/parts/totals.ts';
import { counter, gauge, type MetricFamily } from './metric.ts';

/**
 * Every gauge and counter of a pool, one row each. The schema of the status, its OpenAPI description, the values of
 * unused and idle groups, the sums of several pools, `/metrics` and the dashboard derive from these rows.
 *
 * The pool itself sets the current value in `src/group/observe`, unless the row names a counter of `Totals`. The table
 * contains no schemas, so that the dashboard can read it.
 */
export interface GaugeRow<Schema extends string = string, Total = keyof Totals> {
  /** The schema, by its name in `status.ts`. */
  readonly shape: Schema;
  readonly description: string;
  readonly unit?: 'calls' | 'ms' | 'slots' | 'USD';
  /** null is a value, which `description` explains. */
  readonly nullable?: true;
  /** The field is absent if it has no value. */
  readonly optional?: true;
  /** The value of a group that was never used. Absent if it has none, or if the configuration determines it. */
  readonly unused?: unknown;
  /** The counter whose current value this is. */
  readonly total?: Total;
  /** The value of an idle pool: as reported, or as in an unused group. Absent: a rule in `unused-group.ts`. */
  readonly idle?: 'kept' | 'unused';
  /**
   * The value of several pools. All joins ignore null. `first` takes the first other value, and `tally` adds up by
   * name. Absent: a rule in `group-status.ts`.
   */
  readonly join?: 'sum' | 'tally' | 'max' | 'min' | 'earliest' | 'latest' | 'first' | 'worst';
  /** The value grows with time alone: always, while calls are queued, or while the pool is idle. */
  readonly ages?: 'always' | 'queued' | 'idle';
  /** Its metric. Milliseconds are exposed in seconds. */
  readonly metric?: MetricFamily & { readonly type: 'gauge' | 'counter' };
  /** Label for the names of a tally. */
  readonly label?: string;
  /** Labels of all its samples, if several rows share the metric. */
  readonly labels?: Readonly<Record<string, string>>;
  /** What the dashboard calls these events. It shows the counter among unusual events once it is above 0. */
  readonly unusual?: string;
}

type PoolShape =
  | 'count'
  | 'flag'
  | 'instant'
  | 'ms'
  | 'tally'
  | 'word'
  | 'affinity'
  | 'breaker'
  | 'budget'
  | 'lanes'
  | 'last_hour'
  | 'lately'
  | 'limit'
  | 'limits_seen'
  | 'members'
  | 'pause'
  | 'rates'
  | 'scope'
  | 'scopes'
  | 'spend'
  | 'upstreams';

type MemberShape =
  | 'count'
  | 'instant'
  | 'number'
  | 'breaker'
  | 'ejection'
  | 'limit'
  | 'member_spend'
  | 'pause'
  | 'rates'
  | 'scope';

/** Columns of many rows. */
const SLOTS = { shape: 'count', unit: 'slots', unused: 0, idle: 'unused', join: 'sum' } as const;
const COUNT = { shape: 'count', unused: 0, idle: 'kept', join: 'sum' } as const;
const NUMBER = { ...COUNT, shape: 'number' } as const;
const TALLY = { shape: 'tally', unused: {}, idle: 'kept', join: 'tally' } as const;

const LEASES_ENDED = counter('leases_ended', 'Leases that ended, by outcome.');
const TOKENS = counter('tokens', 'Tokens of the calls, as limits count them.');
const MEMBER_TOKENS = counter('member_tokens', 'Tokens of the calls at a member.');

/** The status of a pool, in the order of its fields. */
export const GAUGES = {
  limit: {
    shape: 'limit',
    description: 'Slot limit. In a split group, that of each partition.',
  },
  in_use: {
    ...SLOTS,
    description: 'Slots that calls hold.',
    metric: gauge('slots_in_use', 'Slots held by calls.'),
  },
  cooling: {
    ...SLOTS,
    description: 'Slots in cool-down: briefly unavailable after their call.',
    metric: gauge('slots_cooling', 'Slots in cool-down after a call.'),
  },
  cooldown_ms: {
    shape: 'ms',
    unit: 'ms',
    description:
      'How long a slot stays unavailable after a successful call, as configured, or as learned if the upstream still counts calls that have ended. The longest if there are several pools.',
    unused: 0,
    join: 'max',
    metric: gauge(
      'cooldown_seconds',
      'Time for which a slot stays unavailable after a successful call, as configured or learned.',
      'max',
    ),
  },
  unclaimed: {
    ...SLOTS,
    description:
      'Orphaned slots: granted before the last reset of this pool, and neither reclaimed nor expired since. They are not free, and not part of `in_use`.',
    metric: gauge(
      'slots_unclaimed',
      'Orphaned slots: calls from before the last reset may still hold them.',
    ),
  },
  unclaimed_until: {
    shape: 'instant',
    description:
      'Time at which orphaned slots expire unless their calls reclaim them. null if there are none.',
    nullable: true,
    unused: null,
    idle: 'unused',
    join: 'latest',
  },
  lent: {
    ...SLOTS,
    description:
      'Prefetched slots: held by Workers for their next calls, and not in use. The figure is up to a second old. They are not free, and not part of `in_use`.',
    metric: gauge('slots_lent', 'Prefetched slots that Workers hold without a call.'),
  },
  queued: {
    shape: 'count',
    unit: 'calls',
    description: 'Number of queued calls.',
    unused: 0,
    idle: 'unused',
    join: 'sum',
  },
  queued_by_lane: {
    shape: 'lanes',
    description: 'Queued calls by lane.',
    unused: { high: 0, normal: 0, low: 0 },
    idle: 'unused',
    join: 'tally',
    metric: gauge('queue_length', 'Queued calls, by lane.'),
    label: 'lane',
  },
  waiting_for: {
    shape: 'tally',
    description:
      'Queued calls by their current wait reason, counting the first 2,000 of each pool. Absent if there are none.',
    optional: true,
    idle: 'unused',
    join: 'tally',
    metric: gauge(
      'queue_waits_for',
      'Queued calls, by current wait reason. Counts the first 2,000 of each pool.',
    ),
    label: 'reason',
  },
  needed_elsewhere: {
    shape: 'tally',
    description:
      'Number of queued calls, by the other pools in which they also need slots and hold none yet. Absent if there are none.',
    optional: true,
    idle: 'unused',
    join: 'tally',
  },
  stalled_ms: {
    shape: 'ms',
    unit: 'ms',
    description:
      'Time since the last call ended, if calls hold slots and none has ended for so long that waits cannot be estimated. null otherwise. The longest if there are several pools.',
    nullable: true,
    unused: null,
    idle: 'unused',
    join: 'max',
    ages: 'always',
  },
  oldest_wait_ms: {
    shape: 'ms',
    unit: 'ms',
    description: 'Age of the oldest queued call. 0 if the queue is empty.',
    unused: 0,
    idle: 'unused',
    join: 'max',
    ages: 'queued',
    metric: gauge('queue_oldest_wait_seconds', 'Age of the oldest queued call.', 'max'),
  },
  wait_p50_ms: {
    shape: 'ms',
    unit: 'ms',
    description:
      'Median wait of the calls granted in the last five minutes. null if there were none.',
    nullable: true,
    unused: null,
    // Quantiles cannot be added up.
    join: 'max',
  },
  wait_p95_ms: {
    shape: 'ms',
    unit: 'ms',
    description: '95th percentile of those waits. null if there were none.',
    nullable: true,
    unused: null,
    join: 'max',
  },
  paused: {
    shape: 'flag',
    description: 'Whether an operator paused it.',
  },
  paused_until: {
    shape: 'instant',
    description:
      'Time at which the upstream backoff ends, after a refusal or because a limit is nearly used up. null if there is none.',
    nullable: true,
    unused: null,
  },
  pause: {
    shape: 'pause',
    description:
      'Details of that pause, the longest if there are several pools. Absent if there is none.',
    optional: true,
  },
  breaker: {
    shape: 'breaker',
    description: 'State of the breaker, the worst if there are several pools.',
    unused: 'closed',
    idle: 'kept',
    join: 'worst',
  },
  breaker_until: {
    shape: 'instant',
    description: 'Time at which an open breaker admits the first probe. null if it is not open.',
    nullable: true,
    unused: null,
    idle: 'kept',
    join: 'latest',
  },
  about: {
    shape: 'scope',
    description:
      'Calls to which `paused_until`, `breaker` and a learned `limit` apply. Other calls start immediately. Absent if they apply to all calls of the pool.',
    optional: true,
  },
  scopes: {
    shape: 'scopes',
    description:
      'State by scope: the calls of a model, a service tier, or a caller’s own key. A scope holds back only its own calls. At most 64: scopes that stop calls first, then the latest refusal first. Absent if there are none.',
    optional: true,
  },
  refusals_total: {
    ...TALLY,
    description:
      'Refusals of the upstream since the instance started, by kind. For a known period, use `last_hour`.',
    total: 'refusals',
    metric: counter('upstream_refusals', 'Refusals of the upstream, by kind.'),
    label: 'kind',
  },
  rates: {
    shape: 'rates',
    description:
      'Request and token limits, by their names in the configuration. null if there are several pools, which each have their own.',
    nullable: true,
  },
  spend: {
    shape: 'spend',
    description:
      'Spend in the current UTC hour, day and month. null if there is no budget and no counted spend.',
    nullable: true,
  },
  draining: {
    shape: 'flag',
    description: 'Whether new calls are rejected.',
  },
  dry_run: {
    shape: 'flag',
    description: 'Whether the group is in a dry run: it decides and counts, but starts every call.',
  },
  granted_total: {
    ...COUNT,
    description: 'Calls granted since the instance started.',
    total: 'granted',
    metric: counter('grants', 'Calls that were granted slots.'),
  },
  rejected_total: {
    ...TALLY,
    description: 'Calls rejected since then, by reason.',
    total: 'rejected',
    metric: counter('rejections', 'Calls that groups rejected, by reason.'),
    label: 'reason',
  },
  would_wait_total: {
    ...COUNT,
    description: 'In a dry run, calls that would not have been granted immediately.',
    total: 'wouldWait',
    metric: counter('dry_run_would_wait', 'Calls in a dry run that would have waited.'),
  },
  expired_total: {
    ...COUNT,
    description: 'Leases that expired because their holder was gone, since the instance started.',
    total: 'expired',
    metric: LEASES_ENDED,
    labels: { outcome: 'expired' },
    unusual: 'released by the watchdog',
  },
  resurrected_total: {
    ...COUNT,
    description:
      'Calls that resumed an expired lease, and first calls of new keys of an account, since the instance started.',
    total: 'resurrected',
    metric: counter(
      'leases_resurrected',
      'Expired leases that were resumed, and first calls of new keys of an account.',
    ),
    unusual: 'reclaimed after their lease expired',
  },
  passed_unlimited_total: {
    ...COUNT,
    description: 'Calls that passed without a slot while the group was unreachable.',
    metric: counter(
      'passed_unlimited',
      'Calls that passed without a slot while the pool was unreachable.',
    ),
    unusual: 'passed without a slot',
  },
  passed_unlimited_at: {
    shape: 'instant',
    description: 'Time at which such calls were last reported to the group. Absent if none were.',
    optional: true,
    idle: 'kept',
    join: 'latest',
  },
  members: {
    shape: 'members',
    description: 'Members where its calls run. Absent if the group has none.',
    optional: true,
  },
  affinity: {
    shape: 'affinity',
    description:
      'Affinity of calls since the instance started. Absent if the group has no members.',
    optional: true,
  },
  upstreams: {
    shape: 'upstreams',
    description:
      'Upstreams of its calls, at most 32 per pool. They survive a reset, except for the last seconds before it.',
    unused: [],
  },
  limits_seen: {
    shape: 'limits_seen',
    description:
      'Limits that upstreams reported in headers, at most 16 per pool. Absent if there are none.',
    optional: true,
    idle: 'kept',
  },
  budget_spent: {
    shape: 'budget',
    description:
      'Budget that causes rejections, because it is spent or did not cover the last call. null if there is none.',
    nullable: true,
    unused: null,
  },
  rate_used_up: {
    shape: 'word',
    description:
      'Name of the request or token limit that calls wait for, or that has no room for the next call. null if there is none.',
    nullable: true,
    unused: null,
    idle: 'unused',
    join: 'first',
  },
  last_hour: {
    shape: 'last_hour',
    description:
      'The last 60 clock minutes, including the current one. For an idle group, the hour of its last use, until that is an hour ago.',
    unused: { granted: 0, rejected: {}, refusals: {}, steps: { refused: [], wait_p95_ms: [] } },
  },
  lately: {
    shape: 'lately',
    description: 'Results of the calls of the last 10 minutes. Absent if there were none.',
    optional: true,
  },
  as_of: {
    shape: 'instant',
    description:
      'Time at which an idle group reported this status. The group has not been used since, and this request did not wake it. Limits, remaining amounts, spend and ages are current. All other values are as reported. Absent if the group was queried now, or was never used.',
    optional: true,
    join: 'earliest',
  },
  idle_ms: {
    shape: 'ms',
    unit: 'ms',
    description:
      'Time since a call last held or waited for a slot, accurate to a minute. 0 while one does.',
    unused: 0,
    join: 'min',
    ages: 'idle',
  },
} as const satisfies Readonly<Record<string, GaugeRow<PoolShape>>>;

/** The status of a member after its configured fields. The values of several pools are joined per member. */
export const MEMBER_GAUGES = {
  limit: {
    shape: 'limit',
    description: 'Slot limit. In a split group, that of each partition.',
  },
  in_use: {
    ...SLOTS,
    description: 'Slots that calls hold there.',
    metric: gauge('member_slots_in_use', 'Slots held by calls at a member.'),
  },
  cooling: {
    ...SLOTS,
    description: 'Slots in cool-down: briefly unavailable after their call.',
  },
  unclaimed: {
    ...SLOTS,
    description:
      'Orphaned slots: granted before the last reset, and neither reclaimed nor expired since.',
  },
  paused_until: {
    shape: 'instant',
    description: 'Time at which the upstream backoff ends. null if there is none.',
    nullable: true,
    unused: null,
  },
  pause: {
    shape: 'pause',
    description: 'Details of that pause. Absent if there is none.',
    optional: true,
  },
  breaker: {
    shape: 'breaker',
    description: 'State of its breaker, the worst if there are several pools.',
    unused: 'closed',
    idle: 'kept',
    join: 'worst',
  },
  breaker_until: {
    shape: 'instant',
    description: 'Time at which an open breaker admits the first probe. null if it is not open.',
    nullable: true,
    unused: null,
    idle: 'kept',
    join: 'latest',
  },
  about: {
    shape: 'scope',
    description:
      'Calls to which `paused_until`, `breaker` and a learned `limit` of this member apply. Absent if they apply to all of its calls.',
    optional: true,
    idle: 'kept',
  },
  out: {
    shape: 'ejection',
    description:
      'The refusal that ejected the member, one of them if several pools ejected it. null if the member is not ejected.',
    nullable: true,
    unused: null,
    idle: 'kept',
    join: 'first',
  },
  rates: {
    shape: 'rates',
    description:
      'Request and token limits. null if there are several pools, which each have their own.',
    nullable: true,
  },
  spend: {
    shape: 'member_spend',
    description: 'Spend. null if there is no budget and no counted spend.',
    nullable: true,
  },
  granted_total: {
    ...COUNT,
    description: 'Calls granted there since the instance started.',
    total: 'granted',
    metric: counter('member_grants', 'Calls that were granted slots at a member.'),
  },
  refused_total: {
    ...COUNT,
    description: 'Calls that its upstream refused since then.',
    total: 'refused',
    metric: counter('member_refusals', 'Calls that the upstream of a member refused.'),
  },
  input_tokens_total: {
    ...NUMBER,
    description: 'Input tokens since then.',
    total: 'inputTokens',
    metric: MEMBER_TOKENS,
    labels: { direction: 'input' },
  },
  output_tokens_total: {
    ...NUMBER,
    description: 'Output tokens since then.',
    total: 'outputTokens',
    metric: MEMBER_TOKENS,
    labels: { direction: 'output' },
  },
  cost_usd_total: {
    ...NUMBER,
    unit: 'USD',
    description: 'Cost of its calls since then.',
    total: 'usd',
    metric: counter('member_cost_usd', 'Cost of the calls at a member.'),
  },
} as const satisfies Readonly<Record<string, GaugeRow<MemberShape, keyof MemberTotals>>>;

/** What only `/metrics` shows of a pool. These rows have no schema and no description. */
export const METRICS_ONLY = {
  slots_by_kind: {
    shape: 'tally',
    optional: true,
    idle: 'unused',
    join: 'tally',
    metric: gauge(
      'slots_in_use_by_kind',
      'Slots in use by holders other than proxied calls, by kind.',
    ),
    label: 'kind',
  },
  queued_by_scope: {
    shape: 'tally',
    optional: true,
    idle: 'unused',
    join: 'tally',
    metric: gauge('queue_held_by_scope', 'Queued calls that a scope holds back, by kind of scope.'),
    label: 'scope',
  },
  granted_again_total: {
    ...COUNT,
    total: 'grantedAgain',
    metric: counter('regrants', 'Grants to further attempts of a call.'),
  },
  left_total: {
    ...COUNT,
    total: 'left',
    metric: counter('departures', 'Queued calls whose callers disconnected.'),
  },
  moved_total: {
    ...COUNT,
    total: 'moved',
    metric: counter('moves', 'Queued calls that were routed again.'),
  },
  ended_total: { ...TALLY, total: 'ended', metric: LEASES_ENDED, label: 'outcome' },
  cut_total: {
    ...TALLY,
    total: 'cut',
    metric: counter('calls_cut', 'Calls that Headgate cut, by reason.'),
    label: 'reason',
  },
  reports_total: {
    ...TALLY,
    total: 'reports',
    metric: counter('lease_reports', 'Refusals reported by lease holders, by outcome.'),
    label: 'result',
  },
  input_tokens_total: {
    ...COUNT,
    total: 'inputTokens',
    metric: TOKENS,
    labels: { direction: 'input' },
  },
  output_tokens_total: {
    ...COUNT,
    total: 'outputTokens',
    metric: TOKENS,
    labels: { direction: 'output' },
  },
  cost_usd_total: { ...COUNT, total: 'usd', metric: counter('cost_usd', 'Cost of the calls.') },
  violations_total: {
    ...TALLY,
    total: 'violations',
    metric: counter(
      'invariant_violations',
      'Violated invariants of Headgate, by name. Any value above 0 is a bug.',
    ),
    label: 'invariant',
  },
  warnings_total: {
    ...TALLY,
    metric: counter('warnings', 'Warnings, by kind.'),
    label: 'kind',
  },
} as const satisfies Readonly<Record<string, Omit<GaugeRow<'count' | 'tally'>, 'description'>>>;

/** The value of a row whose shape is a number or a tally. */
export type Figure<Row> = Row extends { readonly shape: 'tally' }
  ? Readonly<Record<string, number>>
  : number;

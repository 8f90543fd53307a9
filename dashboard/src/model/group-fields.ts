import type { FieldSection } from './field-words.ts';

/** Sections that the name of an automatic group determines. */
const SAID_BY_NAME: ReadonlySet<string> = new Set(['match', 'members', 'partitions']);

export function sectionsOf(name: unknown): readonly FieldSection[] {
  const isAutomatic = typeof name === 'string' && name.startsWith('auto:');
  return isAutomatic ? GROUP_SECTIONS.filter(({ id }) => !SAID_BY_NAME.has(id)) : GROUP_SECTIONS;
}

/** Every field of a group with its label, by section. A test holds it against the schema. */
export const GROUP_SECTIONS: readonly FieldSection[] = [
  {
    id: 'match',
    title: 'Match',
    help: 'Which calls belong to this group. * matches any text. A call must match one entry of every field that has entries. A group without entries matches every call.',
    fields: {
      'match.models': 'Models',
      'match.upstreams': 'Upstreams',
      'match.base_urls': 'Base URLs',
      'match.keys': 'Keys',
      'match.operations': 'Operations',
      'match.paths': 'Paths',
      'match.methods': 'Methods',
      'match.references': 'Models by reference',
    },
  },
  {
    id: 'limits',
    title: 'Limits',
    help: 'All limits apply together: a call needs a slot, and capacity in every rate.',
    fields: {
      'limits.max_concurrency': 'Max concurrency',
      'limits.rpm': 'Requests per minute',
      'limits.tpm': 'Tokens per minute',
      'limits.itpm': 'Input tokens per minute',
      'limits.otpm': 'Output tokens per minute',
      'limits.rpd': 'Requests per day',
      'limits.tpd': 'Tokens per day',
      'limits.starts_per_s': 'Starts per second',
      'limits.burst': 'Burst',
      'limits.max_weight': 'Max weight',
    },
  },
  {
    id: 'members',
    title: 'Members',
    help: 'Where the calls of the group run. The queue chooses a member for each call, because it knows which slots are free.',
    fields: {
      members: 'Members',
      affinity: 'Affinity',
    },
  },
  {
    id: 'queue',
    title: 'Queue and lanes',
    help: 'How many calls may queue, for how long, and in which order they start.',
    fields: {
      'queue.max_length': 'Max length',
      'queue.timeout_ms': 'Time-out',
      'queue.lane_timeouts_ms.high': 'Time-out of the high lane',
      'queue.lane_timeouts_ms.normal': 'Time-out of the normal lane',
      'queue.lane_timeouts_ms.low': 'Time-out of the low lane',
      'queue.max_length_each': 'Max length per tenant',
      'queue.max_length_each_agent': 'Max length per agent',
      'queue.age_credit_ms': 'Age credit',
      'queue.lane_default': 'Default lane',
      'queue.lane_max': 'Highest lane',
      'queue.lane_shares.normal': 'Share of the normal lane',
      'queue.lane_shares.low': 'Share of the low lane',
      'queue.lane_rules': 'Lanes by model',
    },
  },
  {
    id: 'fairness',
    title: 'Fairness',
    help: 'How tenants share the slots.',
    fields: {
      'fairness.by': 'Shared by',
      'fairness.max_concurrency_each': 'Max concurrency per tenant',
      'fairness.max_concurrency_each_agent': 'Max concurrency per agent',
      'fairness.weights': 'Weights',
      'fairness.reserved': 'Reserved slots',
    },
  },
  {
    id: 'partitions',
    title: 'Overlapping groups and partitions',
    help: 'A call needs a slot in each group that matches it, at most four. It acquires slots of narrower groups first.',
    fields: {
      partition_by: 'Partition by',
    },
  },
  {
    id: 'keepalive',
    title: 'Keep-alive and nested calls',
    help: 'What queued streams receive while they wait, and how calls within other calls are treated.',
    fields: {
      'queue.keepalive.after_ms': 'Keep-alive after',
      'queue.keepalive.every_ms': 'Keep-alive every',
      'queue.nested': 'Nested calls',
    },
  },
  {
    id: 'reactions',
    title: 'Reactions to the upstream',
    help: 'What Headgate learns from refusals, when it retries calls, and how long slots stay unavailable after a call.',
    fields: {
      adaptive: 'Adaptive',
      'retries.max': 'Retries',
      'retries.max_body_bytes': 'Largest retried body',
      'retries.budget': 'Retry budget',
      'feed_forward.keep_requests': 'Requests in reserve',
      'feed_forward.keep_tokens': 'Tokens in reserve',
      'feed_forward.keep_share': 'Share in reserve',
      'feed_forward.wait_max_ms': 'Longest pause for the reserve',
      'breaker.threshold': 'Breaker threshold',
      'breaker.min_calls': 'Breaker minimum calls',
      'breaker.window_ms': 'Breaker window',
      'breaker.hold_ms': 'Breaker hold',
      'breaker.hold_max_ms': 'Longest breaker hold',
      probe: 'Probe long pauses',
      'holds.release_cooldown_ms': 'Cool-down after success',
      'holds.cancel_cooldown_ms': 'Cool-down after a cancel',
      'holds.failure_hold_ms': 'Cool-down after a failure',
      'holds.idle_ms': 'Longest silence',
      'holds.stalled_ms': 'Longest stall',
      'holds.upload_min_bytes_per_s': 'Minimum upload rate',
      'holds.max_hold_ms': 'Longest call',
      'holds.max_run_ms': 'Longest run',
    },
  },
  {
    id: 'cost',
    title: 'Cost and budgets',
    help: 'Calls beyond a budget are rejected with budget_exhausted. Hours, days and months are in UTC.',
    fields: {
      'limits.budget_usd.per_hour': 'Budget per hour',
      'limits.budget_usd.per_day': 'Budget per day',
      'limits.budget_usd.per_month': 'Budget per month',
      'limits.budget_usd.fallback_price': 'Fallback price',
      track_usage: 'Track usage',
    },
  },
  {
    id: 'log',
    title: 'Call log',
    help: 'Which calls to log. Prompts and responses are never stored.',
    fields: {
      'log.days': 'Retention',
      'log.sample': 'Sample of other calls',
      'log.slow_ms': 'Slow threshold',
      'log.cost_usd': 'Cost threshold',
    },
  },
  {
    id: 'spill',
    title: 'When full or unreachable',
    help: 'What happens to a call when the group has no free slot, or does not respond.',
    fields: {
      on_saturated: 'When full',
      on_unavailable: 'When unreachable',
    },
  },
  {
    id: 'placement',
    title: 'Placement',
    help: 'Where the Durable Objects of the group run. Has no effect if you host Headgate yourself.',
    fields: {
      location: 'Location',
      jurisdiction: 'Jurisdiction',
    },
  },
  {
    id: 'advanced',
    title: 'Warnings and switches',
    help: 'When to warn, and switches that stop or observe the group.',
    fields: {
      warn_at: 'Warn at',
      warn_wait_ms: 'Warn about waits above',
      paused: 'Paused',
      draining: 'Draining',
      dry_run: 'Dry run',
    },
  },
];

/** Label of the name, which is set once at creation, above all sections. */
export const NAME_LABEL = 'Name';

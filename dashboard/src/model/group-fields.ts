import type { FieldSection } from './field-words.ts';

/** Sections that the name of an automatic group says all of. */
const SAID_BY_NAME: ReadonlySet<string> = new Set(['match', 'members', 'partitions']);

/** Lists the sections of a group's form. */
export function sectionsOf(name: unknown): readonly FieldSection[] {
  const isAutomatic = typeof name === 'string' && name.startsWith('auto:');
  return isAutomatic ? GROUP_SECTIONS.filter(({ id }) => !SAID_BY_NAME.has(id)) : GROUP_SECTIONS;
}

/** Every field of a group with its label, by section. A test holds it against the schema. */
export const GROUP_SECTIONS: readonly FieldSection[] = [
  {
    id: 'match',
    title: 'Match',
    help: 'Which calls count here. * stands for anything. Within a field or, between fields and; what is empty matches every call.',
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
    help: 'They hold together: a call needs a slot and its part of every rate.',
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
    help: 'Places where the calls of the group run. The queue chooses, because it knows what is free.',
    fields: {
      members: 'Members',
      affinity: 'Affinity',
    },
  },
  {
    id: 'queue',
    title: 'Queue and lanes',
    help: 'How many calls wait, for how long, and who goes first.',
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
      'queue.lane_max': 'Best lane',
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
    title: 'Several groups and partitions',
    help: 'A call belongs to every group that matches it, and needs a slot in each; four are the most. Narrow groups are asked first.',
    fields: {
      partition_by: 'Partition by',
    },
  },
  {
    id: 'keepalive',
    title: 'Keep-alive and nested calls',
    help: 'What waiting streams hear, and what becomes of calls made within calls.',
    fields: {
      'queue.keepalive.after_ms': 'Keep-alive after',
      'queue.keepalive.every_ms': 'Keep-alive every',
      'queue.nested': 'Nested calls',
    },
  },
  {
    id: 'reactions',
    title: 'Reactions to the upstream',
    help: 'What is learned from refusals, when calls are sent again, and how long slots stay down.',
    fields: {
      adaptive: 'Adaptive',
      'retries.max': 'Retries',
      'retries.max_body_bytes': 'Retried bodies up to',
      'retries.budget': 'Retry budget',
      'feed_forward.keep_requests': 'Requests kept back',
      'feed_forward.keep_tokens': 'Tokens kept back',
      'feed_forward.keep_share': 'Share kept back',
      'feed_forward.wait_max_ms': 'Longest such pause',
      'breaker.threshold': 'Breaker threshold',
      'breaker.min_calls': 'Breaker calls',
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
    help: 'Calls beyond a budget are refused with budget_exhausted. Hours, days and months are those of UTC.',
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
    title: 'Log of calls',
    help: 'Which calls have a line that is kept. Never what was asked or answered.',
    fields: {
      'log.days': 'Kept for',
      'log.sample': 'Sample of the rest',
      'log.slow_ms': 'Slow from',
      'log.cost_usd': 'Dear from',
    },
  },
  {
    id: 'spill',
    title: 'When it is full or out of reach',
    help: 'What becomes of a call that finds no room, or whose group cannot be asked.',
    fields: {
      on_saturated: 'When full',
      on_unavailable: 'When out of reach',
    },
  },
  {
    id: 'placement',
    title: 'Placement',
    help: 'Where the group’s objects live. Without effect where you host Headgate yourself.',
    fields: {
      location: 'Location',
      jurisdiction: 'Jurisdiction',
    },
  },
  {
    id: 'advanced',
    title: 'Warnings and switches',
    help: 'When to warn, and what stops or watches the group.',
    fields: {
      warn_at: 'Warn at',
      warn_wait_ms: 'Warn of waits beyond',
      paused: 'Paused',
      draining: 'Draining',
      dry_run: 'Dry run',
    },
  },
];

/** Label of the name, which stands above all sections: it is chosen once. */
export const NAME_LABEL = 'Name';

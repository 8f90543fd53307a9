import type { FieldSection, FieldWords } from './field-words.ts';
import { REACTION_FIELDS } from './reaction-fields.ts';

const PER_MINUTE = 'Empty: no limit. 0 grants nothing.';

/** Every field of a group, with the words of docs/configuration.md. A test holds it against the schema. */
export const GROUP_SECTIONS: readonly FieldSection[] = [
  {
    id: 'match',
    title: 'Match',
    help: 'Which calls count here. One per line; * stands for anything. Within a field or, between fields and; what is empty matches every call.',
    fields: {
      'match.models': {
        label: 'Models',
        help: 'gpt-4o is that model at any upstream, openai/gpt-4o only at OpenAI.',
      },
      'match.upstreams': { label: 'Upstreams', help: 'Ids, built-in ones or your own.' },
      'match.base_urls': {
        label: 'Base URLs',
        help: 'As you would give them to an SDK; everything below is meant too.',
      },
      'match.keys': {
        label: 'Keys',
        help: 'Ids of gateway keys, or fingerprints of provider keys. Never keys themselves.',
      },
      'match.operations': { label: 'Operations', help: 'What the call does.' },
    },
  },
  {
    id: 'limits',
    title: 'Limits',
    help: 'They hold together: a call needs a slot and its part of every rate.',
    fields: {
      'limits.max_concurrency': {
        label: 'Max concurrency',
        help: 'Slots: calls in flight at once. Empty: unlimited. 0 grants nothing.',
        unit: 'slots',
      },
      'limits.rpm': { label: 'Requests per minute', help: PER_MINUTE, unit: 'requests' },
      'limits.tpm': { label: 'Tokens per minute', help: PER_MINUTE, unit: 'tokens' },
      'limits.itpm': { label: 'Input tokens per minute', help: PER_MINUTE, unit: 'tokens' },
      'limits.otpm': { label: 'Output tokens per minute', help: PER_MINUTE, unit: 'tokens' },
      'limits.rpd': {
        label: 'Requests per day',
        help: 'In any 24 hours. Empty: no limit.',
        unit: 'requests',
      },
      'limits.tpd': {
        label: 'Tokens per day',
        help: 'In any 24 hours. Empty: no limit.',
        unit: 'tokens',
      },
      'limits.starts_per_s': {
        label: 'Starts per second',
        help: 'Calls that may begin within a second, however many slots are free. Empty: any number.',
        unit: 'calls',
      },
      'limits.burst': {
        label: 'Burst',
        help: 'The part of a minute’s quantity that may go at once. Empty: what 10 seconds bring in.',
        unit: 'of a minute',
      },
      'limits.max_weight': {
        label: 'Max weight',
        help: 'Slots that one call may ask for with headgate-weight; more is refused.',
        unit: 'slots',
      },
    },
  },
  {
    id: 'queue',
    title: 'Queue and lanes',
    help: 'How many calls wait, for how long, and who goes first.',
    fields: {
      'queue.max_length': {
        label: 'Max length',
        help: 'Waiting calls; the next one is refused with queue_full.',
        unit: 'calls',
      },
      'queue.timeout_ms': {
        label: 'Time-out',
        help: 'How long a call may wait; headgate-max-wait of the caller shortens it.',
        unit: 'ms',
      },
      'queue.max_length_each': {
        label: 'Max length per tenant',
        help: 'Waiting calls of one tenant. Empty: no bound of its own.',
        unit: 'calls',
      },
      'queue.max_length_each_agent': {
        label: 'Max length per agent',
        help: 'Waiting calls of one agent run. Empty: no bound of its own.',
        unit: 'calls',
      },
      'queue.age_credit_ms': {
        label: 'Age credit',
        help: 'How much older than its arrival its agent run makes a call. 0: first come, first served. Empty: strictly the oldest run.',
        unit: 'ms',
      },
      'queue.lane_default': {
        label: 'Default lane',
        help: 'Lane of calls for which nobody says another.',
      },
      'queue.lane_max': { label: 'Best lane', help: 'The best lane that a call may have.' },
      'queue.lane_shares.normal': {
        label: 'Share of the normal lane',
        help: 'Least part of the grants while somebody waits there. With 0 it may starve.',
        unit: 'of grants',
      },
      'queue.lane_shares.low': {
        label: 'Share of the low lane',
        help: 'Least part of the grants while somebody waits there. With 0 it may starve.',
        unit: 'of grants',
      },
      'queue.lane_rules': {
        label: 'Lanes by model',
        help: 'For agents that cannot send headgate-lane. The first that matches counts.',
      },
    },
  },
  {
    id: 'fairness',
    title: 'Fairness',
    help: 'How tenants share the slots.',
    fields: {
      'fairness.by': {
        label: 'Shared by',
        help: 'A header is for set-ups where something that you trust sets it: callers can write any.',
      },
      'fairness.max_concurrency_each': {
        label: 'Max concurrency per tenant',
        help: 'Whoever is at it holds up nobody else. Empty: no bound of its own.',
        unit: 'slots',
      },
      'fairness.max_concurrency_each_agent': {
        label: 'Max concurrency per agent',
        help: 'Slots of one agent run. Empty: no bound of its own.',
        unit: 'slots',
      },
      'fairness.weights': {
        label: 'Weights',
        help: 'By tenant: the id of a gateway key, or a fingerprint; 0.01 to 1,000. Who is not named has 1.',
      },
      'fairness.reserved': {
        label: 'Reserved slots',
        help: 'By tenant, or by lane as in lane:high; 1 to 100,000. Others use them while they are free.',
      },
    },
  },
  {
    id: 'partitions',
    title: 'Several groups and partitions',
    help: 'A call belongs to every group that matches it, and needs a slot in each; four are the most. Narrow groups are asked first.',
    fields: {
      partition_by: {
        label: 'Partition by',
        help: 'Each value gets a pool of its own, with the whole limit. Up to 3; header:<name> splits by a header.',
      },
    },
  },
  {
    id: 'keepalive',
    title: 'Keep-alive and nested calls',
    help: 'What waiting streams hear, and what becomes of calls made within calls.',
    fields: {
      'queue.keepalive.after_ms': {
        label: 'Keep-alive after',
        help: 'Streams that wait longer get server-sent comments. Empty: only those that ask for it.',
        unit: 'ms',
      },
      'queue.keepalive.every_ms': {
        label: 'Keep-alive every',
        help: 'How often such a comment is sent.',
        unit: 'ms',
      },
      'queue.nested': {
        label: 'Nested calls',
        help: 'A call that would wait for its own parent’s slot: refuse it, or let it pass on that slot.',
      },
    },
  },
  REACTION_FIELDS,
  {
    id: 'cost',
    title: 'Cost and budgets',
    help: 'Calls beyond a budget are refused with budget_exhausted. Hours, days and months are those of UTC.',
    fields: {
      'limits.budget_usd.per_hour': {
        label: 'Budget per hour',
        help: 'Empty: no budget.',
        unit: 'USD',
      },
      'limits.budget_usd.per_day': {
        label: 'Budget per day',
        help: 'Empty: no budget.',
        unit: 'USD',
      },
      'limits.budget_usd.per_month': {
        label: 'Budget per month',
        help: 'Empty: no budget.',
        unit: 'USD',
      },
      'limits.budget_usd.fallback_price': {
        label: 'Fallback price',
        help: 'For models without a known price. None: with a budget, such calls are refused.',
        unit: 'USD per million tokens',
      },
      track_usage: {
        label: 'Track usage',
        help: 'Counts tokens and cost of every call, though no limit needs them.',
      },
    },
  },
  {
    id: 'spill',
    title: 'When it is full or out of reach',
    help: 'What becomes of a call that finds no room, or whose group cannot be asked.',
    fields: {
      on_saturated: {
        label: 'When full',
        help: 'Wait in the queue, be refused, or go to another upstream of the same dialect.',
      },
      on_unavailable: {
        label: 'When out of reach',
        help: 'While the group’s object cannot be reached: refuse, or let some pass without a slot, counted and shown.',
      },
    },
  },
  {
    id: 'placement',
    title: 'Placement',
    help: 'Where the group’s objects live. Without effect where you host Headgate yourself.',
    fields: {
      location: {
        label: 'Location',
        help: 'A hint for where they are created; only the first call to an object counts.',
      },
      jurisdiction: {
        label: 'Jurisdiction',
        help: 'Where they must stay. Another one means new objects.',
      },
    },
  },
  {
    id: 'advanced',
    title: 'Warnings and switches',
    help: 'When to warn, and what stops or watches the group.',
    fields: {
      warn_at: {
        label: 'Warn at',
        help: 'Warns when this part of the limit is in use for a minute. Empty: never.',
        unit: 'of the limit',
      },
      warn_wait_ms: {
        label: 'Warn of waits beyond',
        help: 'Empty: half of the queue’s time-out.',
        unit: 'ms',
      },
      paused: { label: 'Paused', help: 'Queues and grants nothing.' },
      draining: {
        label: 'Draining',
        help: 'Refuses new calls; the queue and what is in flight go on to their end.',
      },
      dry_run: {
        label: 'Dry run',
        help: 'Decides and counts, and lets everything pass at once.',
      },
    },
  },
];

/** The name stands above all sections: it is chosen once. */
export const NAME_WORDS: FieldWords = {
  label: 'Name',
  help: '1 to 64 of a-z, 0-9, dot, dash, underscore. It cannot be changed later.',
};

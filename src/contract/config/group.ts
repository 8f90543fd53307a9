import * as z from 'zod';
import { LANES } from '../../core/words/ticket.ts';
import { METHODS } from '../http.ts';
import { limitsSchema, text } from './limits.ts';
import {
  affinitySchema,
  membersSchema,
  breakerSchema,
  feedForwardSchema,
  holdsSchema,
  onSaturatedSchema,
  onUnavailableSchema,
  retriesSchema,
} from './members.ts';

/** Groups: the calls that share limits, and all that an operator can set for them. */

/** Location hints of Cloudflare for the creation of an object. */
export const LOCATIONS = [
  'wnam',
  'enam',
  'sam',
  'weur',
  'eeur',
  'apac',
  'apac-ne',
  'apac-se',
  'oc',
  'afr',
  'me',
] as const;

/** Jurisdictions in which Cloudflare can keep an object. */
export const JURISDICTIONS = ['eu', 'fedramp', 'us'] as const;

export const LOG_DAYS = 7;

const callLogSchema = z.strictObject({
  days: z.int().min(0).max(30).default(LOG_DAYS).meta({
    description:
      'How long logged calls can be found. A pool with very many entries keeps them for less time. 0 disables the log.',
    unit: 'days',
  }),
  sample: z.number().min(0).max(1).default(0.1).meta({
    description:
      'Share of the calls that no other rule logs: calls that are not slow, refused, retried or expensive. All attempts of a call are logged, or none. The number per minute is limited, so that the log has space for all `days`.',
    unit: 'of calls',
  }),
  slow_ms: z.int().min(0).max(3_600_000).nullable().default(30_000).meta({
    description: 'Log calls that waited or ran at least this long. null disables this rule.',
    unit: 'ms',
  }),
  cost_usd: z.number().min(0).max(1_000_000).nullable().default(0.25).meta({
    description: 'Log calls that cost at least this much. null disables this rule.',
    unit: 'USD',
  }),
});

export type CallLogConfig = z.output<typeof callLogSchema>;

export const patterns = z.array(text).max(200).default([]);
export const lane = z.enum(LANES);

const tenantBy = z.union([
  z.literal('caller'),
  z.string().regex(/^header:[a-z0-9-]{1,64}$/, 'expected caller or header:<name>'),
]);

const partitionBy = z.union([
  z.enum(['api_key', 'caller', 'model', 'upstream', 'base_url']),
  z
    .string()
    .regex(
      /^header:[a-z0-9-]{1,64}$/,
      'expected api_key, caller, model, upstream, base_url or header:<name>',
    ),
]);

const pathGlob = text.regex(
  /^(?!.*\/\/)(?!.+\/$)[/*][^\s?#%;\\]*$/,
  'expected a path below the base URL, such as /v1/custom/*. It must begin with / or *, and must not end with a slash or contain a query or an escape',
);

const matchSchema = z.strictObject({
  models: patterns.describe(
    'Patterns of models. `gpt-4o` matches the model at any upstream, `openai/gpt-4o` only at OpenAI.',
  ),
  upstreams: patterns.describe('Ids of upstreams, built-in or your own.'),
  base_urls: patterns.describe(
    'Base URLs as you give them to an SDK. Everything below them matches, too.',
  ),
  keys: patterns.describe(
    'Ids of gateway keys, or fingerprints of provider keys. Never the keys themselves.',
  ),
  operations: patterns.describe('Operations, as in `chat`, `messages`, `embeddings`.'),
  paths: z
    .array(pathGlob)
    .max(200)
    .default([])
    .describe(
      'Patterns of paths below the base URL, such as `/v1/custom/*`. Calls to these paths take a slot even if Headgate does not recognize the route.',
    ),
  methods: z
    .array(z.enum(METHODS))
    .max(METHODS.length)
    .default([])
    .describe(
      'Methods of the calls that `paths` matches. If empty: methods with a body (POST, PUT and PATCH).',
    ),
  references: z
    .enum(['refuse', 'allow'])
    .default('refuse')
    .describe(
      'Calls whose body names no model, but whose body or path refers to something that has one: `assistant_id`, `agent_id`, `preset`, `prompt.id`, a stored run, video or conversation, and similar. `refuse`: reject them with 400 if this group depends on the model. `allow`: they count as the model in `headgate-model`, or as calls without a model.',
    ),
});

/** Default for the maximum wait of a call. Also applies to automatic groups. */
export const QUEUE_TIMEOUT_MS = 240_000;

const laneTimeout = (name: string) =>
  z
    .int()
    .min(0)
    .max(3_600_000)
    .nullable()
    .default(null)
    .meta({
      description: `Maximum wait of calls in lane \`${name}\`. null means \`timeout_ms\`.`,
      unit: 'ms',
    });

const queueSchema = z.strictObject({
  max_length: z.int().min(0).max(5_000).default(1_000).meta({
    description:
      'Maximum number of queued calls. The next call is rejected with `queue_full`, unless another queued call is in a lower lane or belongs to a tenant with more queued calls. In that case, that call is dropped. On Cloudflare, at most 2,000 calls can be queued.',
    unit: 'calls',
  }),
  timeout_ms: z.int().min(0).max(3_600_000).default(QUEUE_TIMEOUT_MS).meta({
    description:
      'How long a call may wait before it is rejected with `queue_timeout`. Callers can shorten it with `headgate-max-wait`.',
    unit: 'ms',
  }),
  lane_timeouts_ms: z
    .strictObject({
      high: laneTimeout('high'),
      normal: laneTimeout('normal'),
      low: laneTimeout('low'),
    })
    .prefault({})
    .describe('Maximum waits by lane. They replace `timeout_ms`, and may be longer.'),
  max_length_each: z.int().min(1).max(5_000).nullable().default(null).meta({
    description: 'Maximum number of queued calls of one tenant. null means no separate limit.',
    unit: 'calls',
  }),
  max_length_each_agent: z.int().min(1).max(5_000).nullable().default(null).meta({
    description: 'Maximum number of queued calls of one agent run. null means no separate limit.',
    unit: 'calls',
  }),
  age_credit_ms: z.int().min(0).max(86_400_000).nullable().default(120_000).meta({
    description:
      'Maximum head start in the queue that a call gets from the age of its agent run. 0 means first come, first served. null means strictly the oldest run first.',
    unit: 'ms',
  }),
  lane_shares: z
    .strictObject({
      normal: z.number().min(0).max(0.5).default(0.1).meta({
        description:
          'Minimum share of the grants of lane `normal` while calls are queued there. With 0, the lane can starve.',
        unit: 'of grants',
      }),
      low: z.number().min(0).max(0.5).default(0.05).meta({
        description:
          'Minimum share of the grants of lane `low` while calls are queued there. With 0, the lane can starve.',
        unit: 'of grants',
      }),
    })
    .prefault({})
    .describe('Minimum shares of the lower lanes. With 0.5 for both, none is left for `high`.'),
  lane_rules: z
    .array(
      z.strictObject({
        models: z.array(text).min(1).max(200).describe('Patterns of models.'),
        lane: lane.describe('Lane of the calls to these models.'),
      }),
    )
    .max(50)
    .default([])
    .describe(
      'Lanes by model, for agents that cannot send `headgate-lane`. The first match applies.',
    ),
  lane_default: lane.default('normal').describe('Lane of calls that name none.'),
  lane_max: lane
    .nullable()
    .default(null)
    .describe(
      'Highest lane that a call may have. null means the highest lane of its gateway key, or `normal` without one.',
    ),
  keepalive: z
    .strictObject({
      after_ms: z.int().min(0).max(3_600_000).nullable().default(null).meta({
        description:
          'Streams that are queued for longer than this receive SSE comments, or similar keep-alive data. null means only streams that request it with `headgate-keepalive: sse`.',
        unit: 'ms',
      }),
      every_ms: z.int().min(1_000).max(120_000).default(15_000).meta({
        description: 'Interval of these comments.',
        unit: 'ms',
      }),
    })
    .prefault({})
    .describe('Keep-alive data on queued streams.'),
  nested: z
    .enum(['reject', 'pass'])
    .default('reject')
    .describe(
      'What to do with a call that would wait for the slot of its own parent. `reject`: reject it with `nested`. `pass`: let it run on that slot.',
    ),
});

const fairnessSchema = z.strictObject({
  by: z
    .union([z.tuple([tenantBy]), z.tuple([tenantBy, z.literal('agent')])])
    .default(['caller', 'agent'])
    .describe(
      'Tenants of the group, and whether the agents of a tenant share its part. Use a header only if a trusted proxy sets it, because callers can send any value.',
    ),
  max_concurrency_each: z.int().min(1).max(100_000).nullable().default(null).meta({
    description:
      'Maximum slots of one tenant. A tenant at its limit does not delay others. null means no separate limit.',
    unit: 'slots',
  }),
  max_concurrency_each_agent: z.int().min(1).max(100_000).nullable().default(null).meta({
    description: 'Maximum slots of one agent run. null means no separate limit.',
    unit: 'slots',
  }),
  weights: z
    .record(text, z.number().min(0.01).max(1_000))
    .default({})
    .describe(
      'Weights by tenant: the id of a gateway key, or a fingerprint, with 0.01 to 1,000. All other tenants have weight 1.',
    ),
  reserved: z.record(text, z.int().min(1).max(100_000)).default({}).meta({
    description:
      'Reserved slots by tenant, or by lane as in `lane:high`: 1 to 100,000. Others use them while they are free.',
    unit: 'slots',
  }),
});

/** Name of an automatic group: its upstream, and after a slash the models that have a separate limit. */
const AUTO_NAME = /^auto:[^\s/#]{1,64}(\/[^\s#]{1,128})?$/;

const GROUP_NAME = new RegExp(`^[a-z0-9][a-z0-9._-]{0,63}$|${AUTO_NAME.source}`);

export const groupSchema = z
  .strictObject({
    name: z
      .string()
      .regex(GROUP_NAME, 'expected 1 to 64 of a-z, 0-9, dot, dash, underscore')
      .describe(
        'Name of the group: 1 to 64 of a-z, 0-9, dot, dash, underscore. It cannot be changed later. The name of an automatic group, such as `auto:openai`, sets limits and settings of that group. It then takes the calls of the automatic group.',
      ),
    match: matchSchema
      .prefault({})
      .describe(
        'Calls that belong to the group. Values within a field are alternatives, and all fields must match. If empty, every call matches.',
      ),
    partition_by: z
      .array(partitionBy)
      .max(3)
      .default([])
      .describe(
        'Splits the group. Each value gets its own pool with the whole limit. `header:<name>` splits by a request header.',
      ),
    limits: limitsSchema
      .prefault({})
      .describe('Limits of the group. A call needs a slot, and room in every rate limit.'),
    members: membersSchema.describe(
      'Where calls of the group run: keys, accounts, deployments or regions. If empty, each call runs at the upstream that it is sent to.',
    ),
    affinity: affinitySchema
      .nullable()
      .default(null)
      .describe(
        'Which calls return to the same member. null means the defaults if there are members.',
      ),
    queue: queueSchema
      .prefault({})
      .describe('How many calls can be queued, for how long, and in which order they start.'),
    fairness: fairnessSchema.prefault({}).describe('How tenants share the slots.'),
    holds: holdsSchema
      .prefault({})
      .describe(
        'How long a call may hold its slot, and how long the slot stays unavailable after it.',
      ),
    adaptive: z
      .enum(['auto', 'off'])
      .default('auto')
      .describe(
        '`auto` learns from refusals how many concurrent calls the upstream accepts. `off` applies the configured limit, and what was learned before.',
      ),
    track_usage: z
      .enum(['auto', 'always', 'off'])
      .default('auto')
      .describe(
        'Which calls count in the costs if no limit of the group counts tokens. `auto`: calls whose responses report their usage. Headgate reads no bodies for it. `always` also reads request bodies, and estimates the usage if a response reports none. `off`: none.',
      ),
    log: callLogSchema
      .prefault({})
      .describe('Which calls to log, and for how long. Prompts and responses are never stored.'),
    feed_forward: feedForwardSchema
      .prefault({})
      .describe(
        "When the group pauses before a refusal, because of the upstream's rate-limit headers.",
      ),
    breaker: breakerSchema
      .prefault({})
      .describe(
        'The circuit breaker. Defines when failures of the upstream stop the calls of the group, and for how long.',
      ),
    probe: z
      .enum(['auto', 'off'])
      .default('auto')
      .describe(
        '`auto` probes upstream pauses of more than 15 minutes with one call after 1, 2, 4 and 8 minutes, and then every 15 minutes. A served probe ends the pause. `off` sends no calls before the pause ends.',
      ),
    retries: retriesSchema.prefault({}).describe('When calls are retried.'),
    on_saturated: onSaturatedSchema
      .default('queue')
      .describe(
        'What to do with a call if there is no room: queue it, reject it, or send it to another upstream of the same dialect.',
      ),
    warn_at: z.number().min(0.01).max(1).nullable().default(0.8).meta({
      description:
        'Warns if this share of the limit was in use for a minute on average, with or without queued calls. null disables the warning.',
      unit: 'of the limit',
    }),
    warn_wait_ms: z.int().min(1).max(3_600_000).nullable().default(null).meta({
      description: 'Warns if calls wait longer than this. null means half of `queue.timeout_ms`.',
      unit: 'ms',
    }),
    on_unavailable: onUnavailableSchema
      .default('reject')
      .describe(
        'What to do while the object of the group is unreachable: reject calls, or pass some without a slot. Passed calls are counted and shown.',
      ),
    location: z
      .enum(LOCATIONS)
      .nullable()
      .default(null)
      .describe(
        'Where Cloudflare creates the objects of the group. This is a hint, and takes effect with the first call to an object. null lets Cloudflare choose.',
      ),
    jurisdiction: z
      .enum(JURISDICTIONS)
      .nullable()
      .default(null)
      .describe(
        'Where the objects of the group must stay. null means anywhere. A change creates new objects. Self-hosted, it only hashes the names of partitions.',
      ),
    paused: z.boolean().default(false).describe('Queues all calls, and starts none.'),
    draining: z
      .boolean()
      .default(false)
      .describe('Rejects new calls with `draining`. Queued and running calls finish.'),
    dry_run: z
      .boolean()
      .default(false)
      .describe('Decides and counts, but starts every call immediately.'),
  })
  .describe('A group with all defaults filled in.');

export const autoGroupSchema = z.strictObject({
  name: z
    .string()
    .regex(AUTO_NAME, 'expected auto:<upstream> or auto:<upstream>/<models>, as in auto:openai')
    .describe('Name of the group, as in `auto:openai` or `auto:openai/gpt-5`.'),
  paused: z
    .boolean()
    .default(false)
    .describe('Queues all calls in all its pools, and starts none.'),
  draining: z.boolean().default(false).describe('Rejects new calls in all its pools.'),
  on_saturated: onSaturatedSchema
    .optional()
    .describe('What to do with a call if there is no room, as in a group. Defaults to `queue`.'),
});

import * as z from 'zod';
import { callLogSchema } from './call-log.ts';
import { LANES } from '../../core/words/ticket.ts';
import { METHODS } from '../methods.ts';
import { JURISDICTIONS, LOCATIONS } from './locations.ts';
import { limitsSchema, text } from './limits.ts';
import { affinitySchema, membersSchema } from './members.ts';
import {
  breakerSchema,
  feedForwardSchema,
  holdsSchema,
  onSaturatedSchema,
  onUnavailableSchema,
  retriesSchema,
} from './reactions.ts';

/** Groups, configured ones and the switches of automatic ones. */

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
  'expected a path behind the base URL, as in /v1/custom/*: it begins with / or *, and has no query, escape or slash at its end',
);

const matchSchema = z.strictObject({
  models: patterns.describe(
    'Globs of models: `gpt-4o` is that model at any upstream, `openai/gpt-4o` only at OpenAI.',
  ),
  upstreams: patterns.describe('Ids of upstreams, built-in ones or your own.'),
  base_urls: patterns.describe(
    'Base URLs as you would give them to an SDK; everything below is meant too.',
  ),
  keys: patterns.describe(
    'Ids of gateway keys, or fingerprints of provider keys. Never keys themselves.',
  ),
  operations: patterns.describe('Operations, as in `chat`, `messages`, `embeddings`.'),
  paths: z
    .array(pathGlob)
    .max(200)
    .default([])
    .describe(
      'Globs of paths behind the base URL, as in `/v1/custom/*`. A call that takes no slot otherwise takes one where its path is named here.',
    ),
  methods: z
    .array(z.enum(METHODS))
    .max(METHODS.length)
    .default([])
    .describe(
      'Methods of the calls that `paths` names. Empty: those with a body, POST, PUT and PATCH.',
    ),
  references: z
    .enum(['refuse', 'allow'])
    .default('refuse')
    .describe(
      'Calls whose body does not name a model, but whose body or path refers to something that has one: `assistant_id`, `agent_id`, `preset`, `prompt.id`, a stored run, video or conversation, and similar. `refuse`: they are refused with 400 if this group depends on the model. `allow`: they count as the model in `headgate-model`, or as calls without a model.',
    ),
});

/** How long a call may wait where nobody says otherwise, as in an automatic group. */
export const QUEUE_TIMEOUT_MS = 240_000;

const laneTimeout = (name: string) =>
  z
    .int()
    .min(0)
    .max(3_600_000)
    .nullable()
    .default(null)
    .meta({ description: `The same for calls of lane ${name}. Null: \`timeout_ms\`.`, unit: 'ms' });

const queueSchema = z.strictObject({
  max_length: z.int().min(0).max(5_000).default(1_000).meta({
    description:
      'Maximum number of queued calls. The next call is refused with `queue_full`, unless another queued call is in a lower lane or of a tenant with more queued calls: then that call is dropped. On Cloudflare at most 2,000 calls wait.',
    unit: 'calls',
  }),
  timeout_ms: z.int().min(0).max(3_600_000).default(QUEUE_TIMEOUT_MS).meta({
    description:
      'How long a call may wait before `queue_timeout`; `headgate-max-wait` of the caller shortens it.',
    unit: 'ms',
  }),
  lane_timeouts_ms: z
    .strictObject({
      high: laneTimeout('high'),
      normal: laneTimeout('normal'),
      low: laneTimeout('low'),
    })
    .prefault({})
    .describe('How long calls of each lane may wait, in place of `timeout_ms`; longer ones too.'),
  max_length_each: z.int().min(1).max(5_000).nullable().default(null).meta({
    description: 'Waiting calls of one tenant. Null: no bound of its own.',
    unit: 'calls',
  }),
  max_length_each_agent: z.int().min(1).max(5_000).nullable().default(null).meta({
    description: 'Waiting calls of one agent run. Null: no bound of its own.',
    unit: 'calls',
  }),
  age_credit_ms: z.int().min(0).max(86_400_000).nullable().default(120_000).meta({
    description:
      'How much older than its arrival its agent run makes a call. 0: first come, first served. Null: strictly the oldest run.',
    unit: 'ms',
  }),
  lane_shares: z
    .strictObject({
      normal: z.number().min(0).max(0.5).default(0.1).meta({
        description:
          'Least part of the grants of lane normal while somebody waits there. With 0 it may starve.',
        unit: 'of grants',
      }),
      low: z.number().min(0).max(0.5).default(0.05).meta({
        description:
          'Least part of the grants of lane low while somebody waits there. With 0 it may starve.',
        unit: 'of grants',
      }),
    })
    .prefault({})
    .describe('Least parts of the grants of the lower lanes; 0.5 for both leave none for high.'),
  lane_rules: z
    .array(
      z.strictObject({
        models: z.array(text).min(1).max(200).describe('Globs of models.'),
        lane: lane.describe('The lane of their calls.'),
      }),
    )
    .max(50)
    .default([])
    .describe(
      'Lanes by model, for agents that cannot send `headgate-lane`. The first that matches counts.',
    ),
  lane_default: lane.default('normal').describe('Lane of calls for which nobody says another.'),
  lane_max: lane
    .nullable()
    .default(null)
    .describe(
      'The highest lane that a call may have. Null: as its gateway key allows; a caller without one may ask for `normal` at most.',
    ),
  keepalive: z
    .strictObject({
      after_ms: z.int().min(0).max(3_600_000).nullable().default(null).meta({
        description:
          'Streams that wait longer get comments or the like. Null: only those that ask with `headgate-keepalive: sse`.',
        unit: 'ms',
      }),
      every_ms: z.int().min(1_000).max(120_000).default(15_000).meta({
        description: 'How often such a comment is sent.',
        unit: 'ms',
      }),
    })
    .prefault({})
    .describe('Signs of life for streams that wait.'),
  nested: z
    .enum(['reject', 'pass'])
    .default('reject')
    .describe(
      'A call that would wait for the slot of its own parent: refuse it with `nested`, or let it pass on that slot.',
    ),
});

const fairnessSchema = z.strictObject({
  by: z
    .union([z.tuple([tenantBy]), z.tuple([tenantBy, z.literal('agent')])])
    .default(['caller', 'agent'])
    .describe(
      'Who shares the group, and whether the agents of each share its part. A header is for set-ups where something that you trust sets it: callers can write any.',
    ),
  max_concurrency_each: z.int().min(1).max(100_000).nullable().default(null).meta({
    description:
      'Slots of one tenant; whoever is at it holds up nobody else. Null: no bound of its own.',
    unit: 'slots',
  }),
  max_concurrency_each_agent: z.int().min(1).max(100_000).nullable().default(null).meta({
    description: 'Slots of one agent run. Null: no bound of its own.',
    unit: 'slots',
  }),
  weights: z
    .record(text, z.number().min(0.01).max(1_000))
    .default({})
    .describe(
      'Weights by tenant: the id of a gateway key, or a fingerprint; 0.01 to 1,000. Who is not named has 1.',
    ),
  reserved: z.record(text, z.int().min(1).max(100_000)).default({}).meta({
    description:
      'Slots by tenant, or by lane as in `lane:high`; 1 to 100,000. Others use them while they are free.',
    unit: 'slots',
  }),
});

/** Name of an automatic group: its upstream, and the models behind a slash where these have a limit of their own. */
const AUTO_NAME = /^auto:[^\s/#]{1,64}(\/[^\s#]{1,128})?$/;

const GROUP_NAME = new RegExp(`^[a-z0-9][a-z0-9._-]{0,63}$|${AUTO_NAME.source}`);

/** A group, as operators write it. */
export const groupSchema = z
  .strictObject({
    name: z
      .string()
      .regex(GROUP_NAME, 'expected 1 to 64 of a-z, 0-9, dot, dash, underscore')
      .describe(
        'Name of the group: 1 to 64 of a-z, 0-9, dot, dash, underscore. It cannot be changed later. That of an automatic group, as in `auto:openai`, gives that one limits and settings: the name says which calls it takes.',
      ),
    match: matchSchema
      .prefault({})
      .describe(
        'Which calls count here: within a field or, between fields and. Empty: every call.',
      ),
    partition_by: z
      .array(partitionBy)
      .max(3)
      .default([])
      .describe(
        'Splits the group: each value gets a pool of its own, with the whole limit. `header:<name>` splits by a header.',
      ),
    limits: limitsSchema
      .prefault({})
      .describe('They hold together: a call needs a slot and its part of every rate.'),
    members: membersSchema.describe(
      'Places where the calls of the group run: keys, accounts, deployments, regions. Empty: where each call is sent.',
    ),
    affinity: affinitySchema
      .nullable()
      .default(null)
      .describe('Who keeps a member from call to call. Null: with members, as `{}`.'),
    queue: queueSchema
      .prefault({})
      .describe('How many calls wait, for how long, and who goes first.'),
    fairness: fairnessSchema.prefault({}).describe('How tenants share the slots.'),
    holds: holdsSchema
      .prefault({})
      .describe('How long a call may hold its slot, and how long the slot stays down after it.'),
    adaptive: z
      .enum(['auto', 'off'])
      .default('auto')
      .describe(
        '`auto` learns from refusals how many calls the upstream takes at once; `off` goes by the limit, and by what was learned before.',
      ),
    track_usage: z
      .enum(['auto', 'always', 'off'])
      .default('auto')
      .describe(
        'Which calls stand in the costs if no limit of the group counts tokens. `auto`: calls whose answers report their usage; Headgate reads nothing else for it. `always` also reads the bodies of calls, and estimates the use where an answer reports none. `off`: none.',
      ),
    log: callLogSchema
      .prefault({})
      .describe('Which calls have a line in the log that is kept, and for how long.'),
    feed_forward: feedForwardSchema
      .prefault({})
      .describe('When limit headers of the upstream make the group wait before it is refused.'),
    breaker: breakerSchema
      .prefault({})
      .describe(
        'The circuit breaker: when failures of the upstream stop the calls of the group, and for how long.',
      ),
    probe: z
      .enum(['auto', 'off'])
      .default('auto')
      .describe(
        '`auto` probes an upstream pause of more than 15 minutes with one call after 1, 2, 4, 8 and then every 15 minutes. A served probe ends the pause. `off` sends nothing before the pause ends.',
      ),
    retries: retriesSchema.prefault({}).describe('When a call is sent again.'),
    on_saturated: onSaturatedSchema
      .default('queue')
      .describe(
        'A call that finds no room: wait in the queue, be refused, or go to another upstream of the same dialect.',
      ),
    warn_at: z.number().min(0.01).max(1).nullable().default(0.8).meta({
      description:
        'Warns when this part of the limit was in use for a minute, in the mean, whether calls wait or not. Null: never.',
      unit: 'of the limit',
    }),
    warn_wait_ms: z.int().min(1).max(3_600_000).nullable().default(null).meta({
      description: 'Warns when calls wait longer. Null: half of `queue.timeout_ms`.',
      unit: 'ms',
    }),
    on_unavailable: onUnavailableSchema
      .default('reject')
      .describe(
        'While the object of the group cannot be reached: refuse, or let some calls pass without a slot, counted and shown.',
      ),
    location: z
      .enum(LOCATIONS)
      .nullable()
      .default(null)
      .describe(
        'Where the objects of the group are created, as a hint; only the first call to an object counts.',
      ),
    jurisdiction: z
      .enum(JURISDICTIONS)
      .nullable()
      .default(null)
      .describe(
        'Where the objects of the group must stay; another one means new objects. Without effect where you host Headgate yourself.',
      ),
    paused: z.boolean().default(false).describe('Queues and grants nothing.'),
    draining: z
      .boolean()
      .default(false)
      .describe(
        'Refuses new calls with `draining`; the queue and what is in flight go on to their end.',
      ),
    dry_run: z
      .boolean()
      .default(false)
      .describe('Decides and counts, and lets everything pass at once.'),
  })
  .describe('A group with every default.');

/** All that can be set of a group that Headgate makes by itself. */
export const autoGroupSchema = z.strictObject({
  name: z
    .string()
    .regex(AUTO_NAME, 'expected auto:<upstream> or auto:<upstream>/<models>, as in auto:openai')
    .describe('Name of the group, as in `auto:openai` or `auto:openai/gpt-5`.'),
  paused: z.boolean().default(false).describe('Queues and grants nothing, in all its pools.'),
  draining: z.boolean().default(false).describe('Refuses new calls, in all its pools.'),
  on_saturated: onSaturatedSchema
    .optional()
    .describe('A call that finds no room, as in a group. Absent: it waits in the queue.'),
});

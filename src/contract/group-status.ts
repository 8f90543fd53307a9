import * as z from 'zod';
import { callScopeSchema, temporarySchema, type Frozen } from './shared-shapes.ts';
import { GAUGES } from './gauges.ts';
import { GROUP_STATES } from './status-words.ts';
import {
  gaugesSchema,
  leaseInfoSchema,
  SCOPES_SHOWN_MAX,
  upstreamCallsSchema,
  waiterInfoSchema,
} from './status.ts';
import { attentionListSchema, warningSchema } from './attention.ts';

/** The state of groups as the admin API returns it, and the events of the live feed. */

const partition = z.string().nullable().describe('Partition. null if the group is not split.');
const poolError = z.string().describe('Why the pool did not respond.');

/** One pool of a split group, or why it did not respond. */
const partitionStatusSchema = z.union([
  gaugesSchema.extend({
    partition,
    retired: z
      .literal(true)
      .exactOptional()
      .describe('The partition gets no new calls. It is listed until its last lease has ended.'),
  }),
  z.object({ partition, error: poolError }),
]);

/** Calls that an upstream stops while all others start. */
export const stoppedSchema = z
  .array(callScopeSchema)
  .max(SCOPES_SHOWN_MAX)
  .exactOptional()
  .describe(
    'Stopped calls (models, service tiers and keys), at most 64. Absent unless the state is `partly paused`.',
  );

/** An upstream of a group, with its state as observed by this group. */
const upstreamAtGroupSchema = upstreamCallsSchema.extend({
  state: z
    .enum(['ok', 'partly paused', 'waiting', 'open'])
    .describe(
      '`ok`: calls start as usual. `partly paused`: the upstream refuses only the calls in `stopped`, and all others start as usual. `waiting`: all calls are paused until `paused_until`. `open`: the breaker is not closed. If a group without members called several upstreams, the one that refused last has the state of the group.',
    ),
  paused_until: z.iso
    .datetime()
    .nullable()
    .describe(
      'Time at which the backoff ends. The latest end if `stopped` lists several scopes. null if there is none.',
    ),
  breaker_until: z.iso
    .datetime()
    .nullable()
    .describe('Time at which the breaker admits the first probe. null if it is not open.'),
  stopped: stoppedSchema,
  limit: z.number().nullable().meta({
    description: 'Slots for its calls, including what was learned. null means unlimited.',
    unit: 'slots',
  }),
});

/** Groups in which calls of a group are queued. A call of several groups is queued in one of them. */
export const waitingElsewhereSchema = z
  .array(
    z.object({
      group: z.string().describe('Group in which the calls are queued.'),
      calls: z
        .int()
        .min(0)
        .meta({ description: 'Number of calls that are queued there.', unit: 'calls' }),
    }),
  )
  .describe(
    'Calls of this group that are queued in another one. A call of several groups is in the queue of one of them.',
  );

export const groupStatusSchema = z
  .object({
    name: z.string().describe('Name of the group.'),
    kind: z
      .enum(['configured', 'automatic', 'key', 'team', 'retired'])
      .describe(
        '`key` and `team`: created from the limits of a key or team. `retired`: deleted, and listed until its last lease has ended.',
      ),
    state: z
      .enum(GROUP_STATES)
      .describe(
        'State of the group, as on the dashboard. `flowing`: calls start as usual. `broken`: the breaker is not closed. `refused by upstream`: the upstream refused all calls of the last minute, or answered them with an error status. `nothing served`: all calls of the last minute failed for another reason (see `lately`). `full`: all slots are in use. `partly paused`: the upstream refuses a model, service tier or key (see `scopes` and `about`), and all other calls start as usual. `rate limited`: see `rate_used_up`. `budget spent`: see `budget_spent`. `limit.source` shows whether the limit is learned.',
      ),
    ...gaugesSchema.shape,
    stalled_ms: gaugesSchema.shape.stalled_ms.exactOptional().meta({
      description: `${GAUGES.stalled_ms.description} Absent if no pool responded.`,
      unit: 'ms',
    }),
    waiting_elsewhere: waitingElsewhereSchema
      .exactOptional()
      .describe(
        'Calls of this group that are queued in another one. They do not count in `queued`. Absent if there are none.',
      ),
    upstreams: z
      .array(upstreamAtGroupSchema)
      .describe('Upstreams of its calls, at most 32 per pool.'),
    temporary: z
      .array(temporarySchema)
      .exactOptional()
      .describe('Fields that revert automatically. Absent if there are none.'),
    overlaps_with: z
      .array(z.string())
      .describe('Groups that may match the same calls. Such calls take slots in both groups.'),
    error: z
      .string()
      .exactOptional()
      .describe(
        'Why a pool did not respond. The figures cover only the other pools. Absent if all pools responded.',
      ),
    partitions: z
      .array(partitionStatusSchema)
      .describe('Pools of a split group. Empty if the group is not split.'),
  })
  .describe('State of a group over all its pools.');

export const leaseSchema = leaseInfoSchema
  .extend({ partition })
  .describe('A lease: slots that a call holds.');

export const waiterSchema = waiterInfoSchema
  .extend({ partition })
  .describe('A call that is queued for slots.');

const failureSchema = z.object({ partition, error: poolError });

export const poolFailureSchema = failureSchema.extend({
  group: z.string().describe('Name of the group.'),
});

export const unreachableSchema = z.array(failureSchema).describe('Pools that did not respond.');

export type GroupStatus = Frozen<z.output<typeof groupStatusSchema>>;
export type PartitionStatus = GroupStatus['partitions'][number];
export type UpstreamAtGroup = GroupStatus['upstreams'][number];

const count = z.int().min(0);
const groups = z.array(groupStatusSchema);
const version = count.describe('Version of the configuration.');
const paused = z.boolean().describe('Whether the whole deployment is paused.');

export const feedSnapshotSchema = z
  .object({ version, paused, groups: groups.describe('All groups, configured ones first.') })
  .describe('The same as `GET /status`. The first event of every stream.');

export const feedGroupsSchema = z
  .object({
    groups: groups.describe('Changed groups, in full.'),
    gone: z.array(z.string()).describe('Names of removed groups.'),
  })
  .describe('Changed groups, at most once a second.');

export const feedDetailSchema = z
  .object({
    name: z.string().describe('Name of the group.'),
    leases: z.array(leaseSchema).describe('The first 200 leases, the oldest first.'),
    waiters: z.array(waiterSchema).describe('The first 200 waiters, the next one first.'),
    leases_total: count.describe('Total number of leases.'),
    waiters_total: count.describe('Total number of waiters.'),
    group: groupStatusSchema
      .nullable()
      .describe('State of the group at the same moment, in full. null if there is no such group.'),
  })
  .describe('The requested group, with its first leases and waiters.');

/** Follows the snapshot, so that a page opened after a warning shows it. */
const feedWarningsSchema = z.object({
  warnings: z
    .array(warningSchema)
    .describe('The last 50 warnings of all groups, the latest first.'),
});

/** Follows the snapshot, and every change of the list. */
const feedAttentionSchema = attentionListSchema.pick({ attention: true, left_out: true });

/** Sent when the configuration changed. */
const feedVersionSchema = z.object({ version, paused });

/** Sent every two seconds. A stream without it is dead. */
const feedBeatSchema = z.object({ at: z.iso.datetime().describe('Time of sending.') });

/** Schema of the `data` of each event of `GET /events`. */
export const FEED_EVENTS = {
  snapshot: feedSnapshotSchema,
  groups: feedGroupsSchema,
  detail: feedDetailSchema,
  attention: feedAttentionSchema,
  warnings: feedWarningsSchema,
  warning: warningSchema,
  version: feedVersionSchema,
  beat: feedBeatSchema,
};

export type FeedEventName = keyof typeof FEED_EVENTS;

import * as z from 'zod';
import type { Frozen } from '../frozen.ts';
import { GAUGES } from '../gauges.ts';
import { GROUP_STATES } from './group-states.ts';
import { callScopeSchema } from '../scope.ts';
import {
  gaugesSchema,
  leaseInfoSchema,
  SCOPES_SHOWN_MAX,
  upstreamCallsSchema,
  waiterInfoSchema,
} from '../status.ts';
import { temporarySchema } from '../temporary.ts';

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

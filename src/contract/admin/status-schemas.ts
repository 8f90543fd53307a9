import * as z from 'zod';
import type { Frozen } from '../frozen.ts';
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

/** The state of groups at this moment, of all their pools together. */

const partition = z.string().nullable().describe('The partition. Null: the group is not split.');
const poolError = z.string().describe('Why the pool did not answer.');

/** One pool of a split group, or why nothing is known of it. */
const partitionStatusSchema = z.union([
  gaugesSchema.extend({
    partition,
    retired: z
      .literal(true)
      .exactOptional()
      .describe('It gets no new calls, and is shown until its last lease has ended.'),
  }),
  z.object({ partition, error: poolError }),
]);

/** Which calls an upstream stops while all others start. */
export const stoppedSchema = z
  .array(callScopeSchema)
  .max(SCOPES_SHOWN_MAX)
  .exactOptional()
  .describe(
    'Stopped calls (models, service tiers and keys), without duplicates and at most 64. Present only if the state is `partly paused`.',
  );

/** An upstream that calls of a group went to, and how it fares as far as this group knows. */
const upstreamAtGroupSchema = upstreamCallsSchema.extend({
  state: z
    .enum(['ok', 'partly paused', 'waiting', 'open'])
    .describe(
      '`open`: the breaker is not closed. `waiting`: all calls are paused until `paused_until`. `partly paused`: the upstream refuses only the calls in `stopped`, and all others start as usual. If a group without members called several upstreams, the one that refused last has the state of the group.',
    ),
  paused_until: z.iso
    .datetime()
    .nullable()
    .describe(
      'When the backoff ends. The latest end if `stopped` lists several scopes. null if there is none.',
    ),
  breaker_until: z.iso
    .datetime()
    .nullable()
    .describe('When the breaker admits the first probe. null if it is not open.'),
  stopped: stoppedSchema,
  limit: z
    .number()
    .nullable()
    .meta({ description: 'Slots for its calls, with what was learned. Null: any.', unit: 'slots' }),
});

/** Where calls of a group wait that need slots of other groups too. */
export const waitingElsewhereSchema = z
  .array(
    z.object({
      group: z.string().describe('The group that they wait in.'),
      calls: z.int().min(0).meta({ description: 'Calls that wait there.', unit: 'calls' }),
    }),
  )
  .describe(
    'Calls of this group that wait in another one: a call of several groups stands in the queue of one of them.',
  );

/** A group with all its pools taken together. */
export const groupStatusSchema = z
  .object({
    name: z.string().describe('Name of the group.'),
    kind: z
      .enum(['configured', 'automatic', 'key', 'team', 'retired'])
      .describe(
        '`key`: made of the limits of a key. `retired`: deleted, and shown until its last lease has ended.',
      ),
    state: z
      .enum(GROUP_STATES)
      .describe(
        'The most important state of the group, as on the dashboard. `refused by upstream`: the upstream refused all calls of the last minute, or answered them with an error status. `nothing served`: they all failed or were refused for another reason (see `lately`). `full`: all slots are in use. `partly paused`: the upstream refuses a model, service tier or key (see `scopes` and `about`), and all other calls start as usual. `rate limited`: see `rate_used_up`. `budget spent`: see `budget_spent`. `limit.source` shows whether the limit is learned.',
      ),
    ...gaugesSchema.shape,
    waiting_elsewhere: waitingElsewhereSchema
      .exactOptional()
      .describe(
        'Calls of this group that wait in another one. They are not in `queued`. Absent: there are none.',
      ),
    upstreams: z
      .array(upstreamAtGroupSchema)
      .describe('The upstreams that its calls went to, at most 32 of each pool.'),
    temporary: z
      .array(temporarySchema)
      .exactOptional()
      .describe('Fields that go back by themselves. Absent: there are none.'),
    overlaps_with: z
      .array(z.string())
      .describe('Groups that may count the same calls, which then take slots in both.'),
    error: z
      .string()
      .exactOptional()
      .describe('Set where a pool did not answer; the figures are then those of the others.'),
    partitions: z
      .array(partitionStatusSchema)
      .describe('The pools of a split group; empty: it is not split.'),
  })
  .describe('A group with all its pools taken together.');

/** A slot that is held, with the partition that it is of. */
export const leaseSchema = leaseInfoSchema.extend({ partition }).describe('A slot that is held.');

/** A call that waits for a slot, with the partition that it waits in. */
export const waiterSchema = waiterInfoSchema
  .extend({ partition })
  .describe('A call that waits for a slot.');

const failureSchema = z.object({ partition, error: poolError });

/** A pool of any group that did not answer. */
export const poolFailureSchema = failureSchema.extend({
  group: z.string().describe('The group.'),
});

export const unreachableSchema = z.array(failureSchema).describe('Pools that did not answer.');

export type GroupStatus = Frozen<z.output<typeof groupStatusSchema>>;
/** One pool of a group: what it says of itself, or why it does not. */
export type PartitionStatus = GroupStatus['partitions'][number];
/** An upstream that calls of a group went to. */
export type UpstreamAtGroup = GroupStatus['upstreams'][number];

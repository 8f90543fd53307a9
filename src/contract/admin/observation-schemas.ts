import * as z from 'zod';
import { callScopeSchema } from '../scope.ts';
import { callLineSchema } from '../calls.ts';
import { decisionInfoSchema } from '../decisions.ts';
import { warningSchema } from '../warnings.ts';
import { unreachableSchema } from './status-schemas.ts';

/** The past of groups: their history, the last decisions and the last warnings. */

const at = z.iso.datetime();
const tally = z.record(z.string(), z.int().min(0));
const amount = z.number().min(0);
const partition = z.string().nullable();

/** A tenant, and the time that its calls took. */
const tenantTime = z.object({
  tenant: z.string().describe('The tenant, 128 characters of it at the most.'),
  ms: amount.meta({
    description:
      'How long together: slots times time where they were held. Of several pools or minutes at least so much.',
    unit: 'ms',
  }),
});

/** Time of which nothing is known. */
export const gapSchema = z.object({
  from: at.describe('From this instant on.'),
  to: at.describe('Until this one.'),
  why: z
    .enum(['before', 'absent', 'lost', 'unreachable'])
    .describe(
      '`before`: the group did not exist yet, or had no call yet if it is made by its calls. `absent`: there was no such group. `lost`: a pool was restarted with calls in flight. `unreachable`: no pool answered.',
    ),
  partition: partition.describe('The pool. Null: the group is not split.'),
});

/** One step of a history. */
export const historyPointSchema = z
  .object({
    at: at.describe('When the step began.'),
    in_use_max: amount.meta({
      description:
        'The most slots in use at once. Of several pools an upper bound: they need not have been full at the same instant.',
      unit: 'slots',
    }),
    in_use_mean: amount.meta({ description: 'Slots in use on the average.', unit: 'slots' }),
    limit: amount.nullable().meta({
      description: 'Slots that could be granted at the end of the step. Null: any number.',
      unit: 'slots',
    }),
    limit_configured: amount.nullable().meta({
      description: 'Slots that were configured, or assumed, at the end of it. Null: any number.',
      unit: 'slots',
    }),
    queued_max: amount.meta({ description: 'The most calls that waited at once.', unit: 'calls' }),
    wait_p50_ms: amount.nullable().meta({
      description: 'Median wait of the calls that were granted. Null: there were none.',
      unit: 'ms',
    }),
    wait_p95_ms: amount.nullable().meta({
      description: '95th percentile of those waits. Null: there were none.',
      unit: 'ms',
    }),
    wait_p99_ms: amount.nullable().meta({
      description: '99th percentile of those waits. Null: there were none.',
      unit: 'ms',
    }),
    granted: z.int().min(0).meta({ description: 'Calls that were granted.', unit: 'calls' }),
    rejected: tally.describe('Calls that were refused, by reason.'),
    refusals: tally.describe('Refusals of the upstream, by kind.'),
    input_tokens: amount.meta({ description: 'Input tokens used.', unit: 'tokens' }),
    output_tokens: amount.meta({ description: 'Output tokens used.', unit: 'tokens' }),
    cost_usd: amount.meta({ description: 'Cost of the calls.', unit: 'USD' }),
    waited_for: tally.exactOptional().meta({
      description:
        'Waits that ended in the step, with a slot or without, by what the calls waited for. Absent here and below: of an older release.',
      unit: 'calls',
    }),
    waited_for_ms: z
      .record(z.string(), amount)
      .exactOptional()
      .meta({ description: 'How long those waits took together.', unit: 'ms' }),
    tenants_waited: z
      .array(tenantTime)
      .exactOptional()
      .describe('The three tenants whose calls waited longest, by the same waits.'),
    tenants_held: z
      .array(tenantTime)
      .exactOptional()
      .describe('The three tenants that held slots longest.'),
    granted_by_member: tally
      .exactOptional()
      .describe('Calls that were granted, by member. Absent: the group names none.'),
    refused_by_member: tally
      .exactOptional()
      .describe('Calls that the upstream of a member refused. Absent: as above.'),
    in_use_max_by_member: tally
      .exactOptional()
      .describe('Most slots in use at once, by member. Absent: as above.'),
  })
  .describe('One step of a history.');

/** A change at an instant that explains why the curves bend there. */
export const markerSchema = z
  .object({
    at: at.describe('When it happened.'),
    kind: z
      .enum([
        'paused',
        'resumed',
        'draining',
        'limit_changed',
        'edited',
        'created',
        'removed',
        'breaker_opened',
        'breaker_closed',
        'ceiling_cut',
        'member_out',
        'member_back',
        'reset',
      ])
      .describe('Kind of the change.'),
    label: z.string().describe('A few words, as in `max_concurrency 5 → 3`.'),
    detail: z.string().describe('A sentence for people.'),
    actor: z
      .string()
      .nullable()
      .describe(
        'Who did it, as the audit log names them. Null: nobody here, but the upstream or the platform.',
      ),
    member: z
      .string()
      .exactOptional()
      .describe('The member that it happened to. Absent: it happened to the whole group.'),
    scope: callScopeSchema
      .exactOptional()
      .describe('The calls affected. Absent if it affected all calls of the group or member.'),
    partition: partition.describe(
      'The pool that it happened in. Null: the group is not split, or it was done to all of it.',
    ),
  })
  .describe('A change of a group at an instant.');

export const historySchema = z.object({
  from: at.describe('Beginning of the time that is told of.'),
  to: at.describe('End of it.'),
  step_s: z.int().meta({ description: 'Length of a step.', unit: 's' }),
  since: at
    .nullable()
    .describe(
      'From when on there is data of this time. Sums cover what is after it. Null: there is none.',
    ),
  points: z
    .array(historyPointSchema)
    .describe('The oldest first. Steps in which nothing happened are left out.'),
  gaps: z
    .array(gapSchema)
    .describe(
      'Times without data, the oldest first: what is in no point then need not be zero. A point in one is of what came after.',
    ),
  markers: z.array(markerSchema).describe('The oldest first; the last 1,000.'),
  unreachable: unreachableSchema,
});

/** One decision. What each word means stands in `docs/metrics.md`. */
export const decisionSchema = decisionInfoSchema
  .extend({ partition: partition.describe('The partition. Null: the group is not split.') })
  .describe('A decision of a group, and what became of the call. Its words: docs/metrics.md.');

export const decisionsSchema = z.object({
  decisions: z.array(decisionSchema).describe('The latest first.'),
  unreachable: unreachableSchema,
});

export const warningsSchema = z.object({
  warnings: z.array(warningSchema).describe('The latest first.'),
  unreachable: unreachableSchema,
});

/** A line of the log, and where it is from. */
export const callSchema = callLineSchema
  .extend({
    group: z.string().describe('The group that the line is of.'),
    partition: partition.describe('The partition. Null: the group is not split.'),
  })
  .describe('A call in one of its groups. A call of several groups has a line in each.');

export const callsSchema = z.object({
  calls: z.array(callSchema).describe('The latest first.'),
  from: at.describe('Beginning of the time that was searched.'),
  to: at.describe('End of it.'),
  searched_to: at.describe('The calls of this answer are all that fit and were over since then.'),
  next_cursor: z
    .string()
    .nullable()
    .describe(
      'For the parameter `cursor`: there may be more, also where this answer has none. Null: that was all.',
    ),
  pools: z
    .object({
      asked: z.int().min(0).describe('Pools that were asked.'),
      left_out: z
        .int()
        .min(0)
        .describe(
          'Pools that were not, because there are too many or it took too long: name a group.',
        ),
    })
    .describe('How far the search went.'),
  unreachable: z
    .array(unreachableSchema.element.extend({ group: z.string().describe('The group.') }))
    .describe('Pools that did not answer. What they know is missing.'),
});

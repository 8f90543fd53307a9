import * as z from 'zod';
import { callScopeSchema } from '../scope.ts';
import { callLineSchema } from '../calls.ts';
import { decisionInfoSchema } from '../decisions.ts';
import { warningSchema } from '../warnings.ts';
import { unreachableSchema } from './status-schemas.ts';

const at = z.iso.datetime();
const tally = z.record(z.string(), z.int().min(0));
const amount = z.number().min(0);
const partition = z.string().nullable();

const tenantTime = z.object({
  tenant: z.string().describe('Tenant, cut to 128 characters.'),
  ms: amount.meta({
    description:
      'Total time. For held slots, the sum over the slots. A lower bound if several pools or minutes are combined.',
    unit: 'ms',
  }),
});

export const gapSchema = z.object({
  from: at.describe('Start of the gap.'),
  to: at.describe('End of the gap.'),
  why: z
    .enum(['before', 'absent', 'lost', 'unreachable'])
    .describe(
      '`before`: the group did not exist yet. A group that calls create exists from its first call. `absent`: there was no such group. `lost`: a pool was restarted with calls in flight. `unreachable`: no pool responded.',
    ),
  partition: partition.describe('Partition. null if the group is not split.'),
});

export const historyPointSchema = z
  .object({
    at: at.describe('Start of the step.'),
    in_use_max: amount.meta({
      description:
        'Maximum slots in use. An upper bound if there are several pools, because they need not have peaked at the same time.',
      unit: 'slots',
    }),
    in_use_mean: amount.meta({ description: 'Mean of the slots in use.', unit: 'slots' }),
    limit: amount.nullable().meta({
      description: 'Slots that could be granted at the end of the step. null means unlimited.',
      unit: 'slots',
    }),
    limit_configured: amount.nullable().meta({
      description:
        'Slots that were configured or assumed at the end of the step. null means unlimited.',
      unit: 'slots',
    }),
    queued_max: amount.meta({ description: 'Maximum length of the queue.', unit: 'calls' }),
    wait_p50_ms: amount.nullable().meta({
      description: 'Median wait of the granted calls. null if there were none.',
      unit: 'ms',
    }),
    wait_p95_ms: amount.nullable().meta({
      description: '95th percentile of those waits. null if there were none.',
      unit: 'ms',
    }),
    wait_p99_ms: amount.nullable().meta({
      description: '99th percentile of those waits. null if there were none.',
      unit: 'ms',
    }),
    granted: z.int().min(0).meta({ description: 'Number of granted calls.', unit: 'calls' }),
    rejected: tally.describe('Rejected calls, by reason.'),
    refusals: tally.describe('Refusals of the upstream, by kind.'),
    input_tokens: amount.meta({ description: 'Input tokens used.', unit: 'tokens' }),
    output_tokens: amount.meta({ description: 'Output tokens used.', unit: 'tokens' }),
    cost_usd: amount.meta({ description: 'Cost of the calls.', unit: 'USD' }),
    waited_for: tally.meta({
      description: 'Waits that ended in the step, with or without a slot, by wait reason.',
      unit: 'calls',
    }),
    waited_for_ms: z
      .record(z.string(), amount)
      .meta({ description: 'Total time of those waits.', unit: 'ms' }),
    tenants_waited: z
      .array(tenantTime)
      .describe('The three tenants with the longest of those waits.'),
    tenants_held: z.array(tenantTime).describe('The three tenants that held slots longest.'),
    granted_by_member: tally
      .exactOptional()
      .describe('Granted calls by member. Absent if the group has no members.'),
    refused_by_member: tally
      .exactOptional()
      .describe(
        'Calls that the upstream of a member refused, by member. Absent if the group has no members.',
      ),
    in_use_max_by_member: tally
      .exactOptional()
      .describe('Maximum slots in use, by member. Absent if the group has no members.'),
  })
  .describe('One step of a history.');

/** A change that explains why the curves bend at a certain time. */
export const markerSchema = z
  .object({
    at: at.describe('Time of the change.'),
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
    label: z.string().describe('Short label, such as `max_concurrency 5 → 3`.'),
    detail: z.string().describe('Description for people.'),
    actor: z
      .string()
      .nullable()
      .describe('Actor, as in the audit log. null if the upstream or the platform caused it.'),
    member: z
      .string()
      .exactOptional()
      .describe('Affected member. Absent if the whole group was affected.'),
    scope: callScopeSchema
      .exactOptional()
      .describe('Affected calls. Absent if it affected all calls of the group or member.'),
    partition: partition.describe(
      'Affected partition. null if the group is not split, or the whole group was affected.',
    ),
  })
  .describe('A change of a group at one point in time.');

export const historySchema = z.object({
  from: at.describe('Start of the period.'),
  to: at.describe('End of the period.'),
  step_s: z.int().meta({ description: 'Length of a step.', unit: 's' }),
  since: at
    .nullable()
    .describe(
      'Start of the data within the period. Sums cover the time after it. null if there is no data.',
    ),
  points: z
    .array(historyPointSchema)
    .describe('Points, the oldest first. Steps without activity are omitted.'),
  gaps: z
    .array(gapSchema)
    .describe(
      'Times without data, the oldest first. Missing points there may not be zero. A point within a gap describes the time after the restart.',
    ),
  markers: z.array(markerSchema).describe('The last 1,000 changes, the oldest first.'),
  unreachable: unreachableSchema,
});

export const decisionSchema = decisionInfoSchema
  .extend({ partition: partition.describe('Partition. null if the group is not split.') })
  .describe('A decision of a group, and how the call ended. docs/metrics.md explains the values.');

export const decisionsSchema = z.object({
  decisions: z.array(decisionSchema).describe('Decisions, the latest first.'),
  unreachable: unreachableSchema,
});

export const warningsSchema = z.object({
  warnings: z.array(warningSchema).describe('Warnings, the latest first.'),
  unreachable: unreachableSchema,
});

export const callSchema = callLineSchema
  .extend({
    group: z.string().describe('Group of this entry.'),
    partition: partition.describe('Partition. null if the group is not split.'),
  })
  .describe('A logged call in one of its groups. A call of several groups has an entry in each.');

export const callsSchema = z.object({
  calls: z.array(callSchema).describe('Calls, the latest first.'),
  from: at.describe('Start of the searched period.'),
  to: at.describe('End of the searched period.'),
  searched_to: at.describe('The response is complete for calls that ended at or after this time.'),
  next_cursor: z
    .string()
    .nullable()
    .describe(
      'Send it as `cursor`. There may be more calls, even if this response has none. null if the search is complete.',
    ),
  pools: z
    .object({
      asked: z.int().min(0).describe('Number of queried pools.'),
      left_out: z
        .int()
        .min(0)
        .describe(
          'Number of pools that were not queried, because there are too many or it took too long. To query them, set `group`.',
        ),
    })
    .describe('Extent of the search.'),
  unreachable: z
    .array(unreachableSchema.element.extend({ group: z.string().describe('Name of the group.') }))
    .describe('Pools that did not respond. Their calls are missing.'),
});

import * as z from 'zod';
import { refusalCountSchema } from './refusals.ts';
import { callScopeSchema } from './scope.ts';
import { waitCauseSchema } from './decisions.ts';
import { LANES } from '../core/words/ticket.ts';

/** Response of `GET /status`. It describes only the caller's own calls. */

const count = z.int().min(0);
const amount = z.number().min(0);
const at = z.iso.datetime();

const rateSchema = z.object({
  limit: z.number().describe('The limit.'),
  left: z
    .number()
    .nullable()
    .describe(
      'Remaining amount. null if other callers share the limit, because it would reveal their usage.',
    ),
});

const waitingSchema = z.object({
  ticket: z.string().describe('Id of the ticket.'),
  position: count.describe('Number of calls of all callers that will probably start before it.'),
  estimate_ms: amount.nullable().meta({
    description:
      'Estimated remaining wait. null if it is unknown because no call has ended for a long time, or because an operator ends the wait.',
    unit: 'ms',
  }),
  waits_for: waitCauseSchema.describe('Current wait reason.'),
  needs: z
    .array(z.string())
    .exactOptional()
    .describe(
      'Other groups in which it still needs slots. It holds none there. Absent if there are none.',
    ),
  waited_ms: amount.meta({ description: 'Time that it has waited.', unit: 'ms' }),
  lane: z.enum(LANES).describe('Lane of the call.'),
  upstream: z.string().describe('Upstream of the call.'),
  model: z.string().nullable().describe('Model. null if it is unknown.'),
  agent: z.string().nullable().describe('Agent run. null if there is none.'),
  slots: count.meta({ description: 'Requested slots.', unit: 'slots' }),
});

export const callerGroupSchema = z.object({
  name: z.string().describe('Name of the group.'),
  kind: z.enum(['configured', 'automatic', 'key', 'team']).describe('Kind of the group.'),
  partition: z
    .string()
    .nullable()
    .describe('Partition. null if the group is not split, or the partition is not known yet.'),
  limits: z
    .object({
      slots: amount.nullable().meta({
        description:
          'Slots that can be granted to all callers of the group, as configured or learned. null means unlimited.',
        unit: 'slots',
      }),
      slots_each: amount.nullable().meta({
        description: 'Maximum slots of one tenant. null means no limit.',
        unit: 'slots',
      }),
      slots_each_agent: amount.nullable().meta({
        description: 'Maximum slots of one agent run. null means no limit.',
        unit: 'slots',
      }),
      rates: z
        .record(z.string(), rateSchema)
        .describe('Request and token limits, by their names in the configuration.'),
      budget_usd: z.record(z.string(), rateSchema).meta({
        description: 'Budgets, by `per_hour`, `per_day` and `per_month`.',
        unit: 'USD',
      }),
    })
    .describe('Limits of the group.'),
  paused: z.boolean().describe('Whether an operator paused the group.'),
  paused_until: at
    .nullable()
    .describe('Time at which the upstream backoff ends. null if there is none.'),
  pause_message: z
    .string()
    .exactOptional()
    .describe(
      'Message of the upstream about its pause. Absent if it sent none, or there is no pause.',
    ),
  about: callScopeSchema
    .exactOptional()
    .describe(
      'Calls to which `paused_until` and a learned limit apply. Absent if they apply to all calls.',
    ),
  scopes: z
    .array(
      z.object({
        about: callScopeSchema,
        paused_until: at.nullable().describe('Time at which the backoff for these calls ends.'),
        pause_message: z
          .string()
          .exactOptional()
          .describe('Message of the upstream about this pause. Absent if it sent none.'),
      }),
    )
    .exactOptional()
    .describe(
      'Models, service tiers and own keys that an upstream backoff stops, while all other calls start. Keys of other callers are omitted. Absent if there are none.',
    ),
  draining: z.boolean().describe('Whether new calls are rejected.'),
  in_flight: count.meta({
    description: 'Number of calls of the caller that hold slots.',
    unit: 'calls',
  }),
  slots_in_use: count.meta({ description: 'Slots that these calls hold.', unit: 'slots' }),
  waiting: z.array(waitingSchema).describe('Queued calls of the caller, the next one first.'),
});

const callerRefusalSchema = refusalCountSchema
  .pick({
    reason: true,
    group: true,
    upstream: true,
    model: true,
    count: true,
    first_at: true,
    last_at: true,
    message: true,
  })
  .extend({ request_ids: z.array(z.string()).describe('Ids of the latest requests.') });

export const callerStatusSchema = z.object({
  at: at.describe('Time of this status.'),
  key: z
    .object({
      id: z.string().describe('Id of the gateway key, or fingerprint of the provider key.'),
      kind: z.enum(['gateway', 'provider']).describe('Kind of the key.'),
      lane_max: z
        .enum(LANES)
        .describe(
          'Highest lane that its calls may request. `queue.lane_max` of a group may differ.',
        ),
      weight: z.number().describe('Weight of the key in its groups.'),
      expires_at: at.nullable().describe('Time at which it expires. null if it never expires.'),
    })
    .describe('The key of this request.'),
  may_use: z.array(z.string()).describe('Configured groups that the gateway key may use.'),
  groups: z
    .array(callerGroupSchema)
    .describe(
      "Groups with calls of the caller. Groups without calls are listed if they are the caller's own, or not split.",
    ),
  refusals: z
    .array(callerRefusalSchema)
    .describe(
      'Calls of the key that Headgate rejected within the last hour, the latest first, at most 50 rows. They appear within about ten seconds.',
    ),
  left_out: count.describe('Number of pools that were not queried. A request queries at most 64.'),
  unreachable: z.array(z.string()).describe('Names of groups with a pool that did not respond.'),
});

export type CallerStatus = z.output<typeof callerStatusSchema>;
export type CallerGroup = z.output<typeof callerGroupSchema>;

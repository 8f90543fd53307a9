import * as z from 'zod';
import { refusalCountSchema } from './refusals.ts';
import { callScopeSchema } from './scope.ts';
import { waitCauseSchema } from './decisions.ts';
import { LANES } from '../core/words/ticket.ts';

/** Answer of `GET /status`: a caller is told of its own calls, and of nobody else's. */

const count = z.int().min(0);
const amount = z.number().min(0);
const at = z.iso.datetime();

const rateSchema = z.object({
  limit: z.number().describe('The limit.'),
  left: z
    .number()
    .nullable()
    .describe('What is left of it. Null: others share it, so that it would tell of them.'),
});

const waitingSchema = z.object({
  ticket: z.string().describe('Id of the ticket.'),
  position: count.describe('Calls that will probably go before it, of whatever caller.'),
  estimate_ms: amount.nullable().meta({
    description:
      'How long it will probably wait on. null if nothing is known of it: no call has ended for long, or an operator ends the wait.',
    unit: 'ms',
  }),
  waits_for: waitCauseSchema.exactOptional().describe('Why it waits now. Absent: not known.'),
  needs: z
    .array(z.string())
    .exactOptional()
    .describe('Other groups that it needs slots of and holds none of. Absent: none.'),
  waited_ms: amount.meta({ description: 'How long it has waited.', unit: 'ms' }),
  lane: z.enum(LANES).describe('The lane in which it waits.'),
  upstream: z.string().describe('The upstream that it goes to.'),
  model: z.string().nullable().describe('The model. Null: not known.'),
  agent: z.string().nullable().describe('The agent run. Null: it belongs to none.'),
  slots: count.meta({ description: 'Slots that it asks for.', unit: 'slots' }),
});

const callerGroupSchema = z.object({
  name: z.string().describe('Name of the group.'),
  kind: z.enum(['configured', 'automatic', 'key', 'team']).describe('Kind of the group.'),
  partition: z
    .string()
    .nullable()
    .describe('The partition. Null: the group is not split, or no partition is known yet.'),
  limits: z
    .object({
      slots: amount.nullable().meta({
        description:
          'Slots that can be granted, with what was learned, over all who share the group. Null: any number.',
        unit: 'slots',
      }),
      slots_each: amount.nullable().meta({
        description: 'The most that one tenant may hold. Null: no bound.',
        unit: 'slots',
      }),
      slots_each_agent: amount.nullable().meta({
        description: 'The most that one agent run may hold. Null: no bound.',
        unit: 'slots',
      }),
      rates: z
        .record(z.string(), rateSchema)
        .describe('Limits of requests and tokens by their names in the configuration.'),
      budget_usd: z.record(z.string(), rateSchema).meta({
        description: 'Budgets by `per_hour`, `per_day`, `per_month`.',
        unit: 'USD',
      }),
    })
    .describe('Its limits.'),
  paused: z.boolean().describe('An operator paused it.'),
  paused_until: at.nullable().describe('When the upstream backoff ends. null if there is none.'),
  pause_message: z
    .string()
    .exactOptional()
    .describe('Message of the upstream about its pause. Absent if it sent none, or is not paused.'),
  about: callScopeSchema
    .exactOptional()
    .describe(
      'The calls to which `paused_until` and a learned limit apply. Absent if they apply to all calls.',
    ),
  scopes: z
    .array(
      z.object({
        about: callScopeSchema,
        paused_until: at.nullable().describe('When the backoff for these calls ends.'),
        pause_message: z
          .string()
          .exactOptional()
          .describe('Message of the upstream about this pause. Absent if it sent none.'),
      }),
    )
    .exactOptional()
    .describe(
      'Models, service tiers and own keys that the upstream stops while all other calls start. Keys of other callers are left out. Absent if there are none.',
    ),
  draining: z.boolean().describe('New calls are refused.'),
  in_flight: count.meta({ description: 'Calls of the caller that hold slots.', unit: 'calls' }),
  slots_in_use: count.meta({ description: 'Slots that they hold.', unit: 'slots' }),
  waiting: z.array(waitingSchema).describe('Calls of the caller that wait, the next one first.'),
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
  at: at.describe('When this was true.'),
  key: z
    .object({
      id: z.string().describe('Id of the gateway key, or fingerprint of the provider key.'),
      kind: z.enum(['gateway', 'provider']).describe('Kind of the key.'),
      lane_max: z
        .enum(LANES)
        .describe(
          'The highest lane that its calls may request. `queue.lane_max` of a group may differ.',
        ),
      weight: z.number().describe('Its part of the groups that it calls in.'),
      expires_at: at.nullable().describe('From then on it opens nothing. Null: never.'),
    })
    .describe('The key that was sent.'),
  may_use: z.array(z.string()).describe('Configured groups that a gateway key may use.'),
  groups: z
    .array(callerGroupSchema)
    .describe(
      'Groups with calls of the caller; those without are listed where they are its own, or not split.',
    ),
  refusals: z
    .array(callerRefusalSchema)
    .describe(
      'Calls of the key that Headgate itself refused within the last hour, the latest first, at most 50 rows. They arrive within about ten seconds.',
    ),
  left_out: count.describe('Pools that were not asked, because a request asks 64 at the most.'),
  unreachable: z.array(z.string()).describe('Names of groups with a pool that did not answer.'),
});

export type CallerStatus = z.output<typeof callerStatusSchema>;
export type CallerGroup = z.output<typeof callerGroupSchema>;

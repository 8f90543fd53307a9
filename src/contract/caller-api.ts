import * as z from 'zod';
import { OUTCOMES_REPORTED } from '../core/words/outcome.ts';
import { LANES } from '../core/words/ticket.ts';
import { waitCauseSchema } from './decisions.ts';
import { callScopeSchema, type Frozen } from './shared-shapes.ts';
import { refusalCountSchema } from './reasons.ts';

/**
 * Headgate's own routes for callers. Leases over HTTP, for calls that Headgate cannot proxy: bodies and responses of
 * `/leases` and `/tickets`. `GET /status`, which describes only the caller's own calls.
 */

const count = z.int().min(0);
const ms = z.int().min(0);
/** Maximum tokens of one call, far more than any model accepts. */
const TOKENS_MAX = 10_000_000;
const tokens = count.max(TOKENS_MAX);
const name = z.string().min(1).max(256);

/** Maximum length of a lease or a ticket. Both name all members that have refused the call. */
export const TOKEN_LENGTH_MAX = 16_384;
const token = z.string().min(1).max(TOKEN_LENGTH_MAX);

const instant = z
  .union([z.number(), z.string()])
  .transform((at) => (typeof at === 'number' ? at : Date.parse(at)))
  .refine((at) => Number.isFinite(at), 'expected epoch milliseconds or an RFC 3339 time');

const usageSchema = z
  .strictObject({
    input_tokens: tokens
      .exactOptional()
      .meta({ description: 'Input tokens, including cached ones.', unit: 'tokens' }),
    output_tokens: tokens
      .exactOptional()
      .meta({ description: 'Output tokens, including reasoning.', unit: 'tokens' }),
    cached_tokens: tokens.exactOptional().meta({
      description: 'Cached input tokens.',
      unit: 'tokens',
    }),
  })
  .describe(
    'Usage of the call, as counted by its provider. It is charged if the key has `allow: [lease_usage]`. Otherwise, the reservation is charged.',
  );

/** `POST /leases`. */
export const leaseRequestSchema = z
  .strictObject({
    group: name
      .exactOptional()
      .describe('Group in which to acquire a slot. Send either `group` or `upstream`.'),
    upstream: name
      .exactOptional()
      .describe('Upstream of the call. Its groups are determined as for a proxied call.'),
    model: name.exactOptional().describe('Model of the call. It determines groups and prices.'),
    lane: z.enum(LANES).exactOptional().describe('Lane of the call, as in `headgate-lane`.'),
    agent: z
      .string()
      .max(200)
      .exactOptional()
      .describe('Agent run of the call, as in `headgate-agent`.'),
    agent_started_at: instant
      .exactOptional()
      .describe('Start of the agent run: epoch milliseconds, or RFC 3339.'),
    slots: z.int().min(1).max(9_999).exactOptional().meta({
      description: 'Slots that the call takes, as in `headgate-weight`. Defaults to 1.',
      unit: 'slots',
    }),
    max_wait_ms: ms.exactOptional().meta({
      description:
        'Maximum wait since the first request. 0 means no wait. Absent means as long as the group allows.',
      unit: 'ms',
    }),
    estimate: z
      .strictObject({
        input_tokens: tokens.exactOptional().meta({
          description: 'Expected input tokens. 0 or absent means unknown, and reserves 16,384.',
          unit: 'tokens',
        }),
        output_tokens: tokens
          .exactOptional()
          .meta({ description: 'Maximum output tokens.', unit: 'tokens' }),
      })
      .exactOptional()
      .describe('Reservation from token limits and budgets, until `usage` replaces it.'),
    parents: z
      .array(z.string().min(1).max(100))
      .max(4)
      .exactOptional()
      .describe('Lease ids of the parent call, as in `headgate-parent`.'),
    ticket: token
      .exactOptional()
      .describe(
        'Ticket of a 202 or of a report. Retries with the same body keep their place and age.',
      ),
  })
  .refine(({ group, upstream }) => (group === undefined) !== (upstream === undefined), {
    path: ['group'],
    error: 'expected either group or upstream',
  });

/** 201 of `POST /leases`. */
export const leaseAnswerSchema = z.object({
  lease: z
    .string()
    .describe(
      'Lease token. Use it to renew, report on and release the lease. It is opaque, and valid only for this caller.',
    ),
  lease_ids: z.array(z.string()).describe('Ids of the lease in its groups, as shown to operators.'),
  groups: z.array(z.string()).describe('Groups in which it holds slots, narrow ones first.'),
  member: z
    .string()
    .nullable()
    .describe('Member that runs the call. null if the group has no members.'),
  expires_at: z.iso
    .datetime()
    .describe('Time at which it expires unless it is renewed, by the clock of Headgate.'),
  expires_after_ms: ms.meta({
    description:
      'Time until it expires, counted from when you sent the request. Use it if your clock may differ from that of Headgate.',
    unit: 'ms',
  }),
  renew_within_ms: ms.meta({ description: 'Renew the lease within this time.', unit: 'ms' }),
  waited_ms: ms.meta({ description: 'Wait since the first request.', unit: 'ms' }),
});

/** 202 of `POST /leases`. */
export const ticketAnswerSchema = z.object({
  ticket: z
    .string()
    .describe(
      'Send it with the same body after `retry_after_ms`. The place in the queue is kept for five seconds longer. The ticket always keeps its age.',
    ),
  position: count.nullable().describe('Number of waiters ahead of it. null if it is unknown.'),
  estimate_ms: ms.nullable().meta({
    description:
      'Estimated remaining wait. null if it is unknown because no call has ended for a long time, or because an operator ends the wait.',
    unit: 'ms',
  }),
  group: z
    .string()
    .describe('Group in which it is queued. It may need slots in other groups, too.'),
  waits_for: waitCauseSchema
    .exactOptional()
    .describe('Current wait reason. Absent if it is unknown.'),
  retry_after_ms: ms.meta({
    description:
      'Time after which to retry. 0 means immediately. 3000 means that a newer request for the same ticket waits instead of this one.',
    unit: 'ms',
  }),
});

/** 200 of `PUT /leases/{lease}`. */
export const renewalAnswerSchema = leaseAnswerSchema.pick({
  lease: true,
  expires_at: true,
  expires_after_ms: true,
  renew_within_ms: true,
});

/** `PATCH /leases/{lease}`. */
export const reportRequestSchema = z
  .strictObject({
    status: z
      .int()
      .min(100)
      .max(599)
      .exactOptional()
      .describe('Status of the provider’s response. Absent if there was none.'),
    headers: z
      .record(z.string().max(256), z.string().max(4_096))
      .refine((all) => Object.keys(all).length <= 200, 'expected at most 200 headers')
      .exactOptional()
      .describe('Headers of that response. Waits and limits are read from them.'),
    error: z
      .union([z.string().max(65_536), z.record(z.string(), z.unknown())])
      .exactOptional()
      .describe('Body of an error response, or the message of a broken connection.'),
  })
  .refine(({ status, error }) => status !== undefined || error !== undefined, {
    path: ['status'],
    error: 'expected status, or error if there was no response',
  });

/** 200 of `PATCH /leases/{lease}`. */
export const reportAnswerSchema = z.object({
  action: z
    .enum(['go_on', 'again', 'stop'])
    .describe(
      '`go_on`: the lease continues. `again`: the slot was released; wait, then retry with `ticket`. `stop`: the slot was released, and a retry does not help.',
    ),
  after_ms: ms.meta({ description: 'Wait before the retry.', unit: 'ms' }),
  ticket: z
    .string()
    .exactOptional()
    .describe('For `again`: send it with the same body. The ticket keeps its age.'),
});

/** `DELETE /leases/{lease}`. The body is optional. */
export const releaseRequestSchema = z.strictObject({
  outcome: z
    .enum(OUTCOMES_REPORTED)
    .exactOptional()
    .describe('How the call ended. Defaults to `success`.'),
  usage: usageSchema.exactOptional(),
});

export type LeaseRequestBody = Frozen<z.output<typeof leaseRequestSchema>>;
export type LeaseAnswer = Frozen<z.output<typeof leaseAnswerSchema>>;
export type TicketAnswer = Frozen<z.output<typeof ticketAnswerSchema>>;
export type RenewalAnswer = Frozen<z.output<typeof renewalAnswerSchema>>;
export type ReportRequest = Frozen<z.output<typeof reportRequestSchema>>;
export type ReportAnswer = Frozen<z.output<typeof reportAnswerSchema>>;
export type ReleaseRequest = Frozen<z.output<typeof releaseRequestSchema>>;

const amount = z.number().min(0);
const time = z.iso.datetime();

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
  paused_until: time
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
        paused_until: time.nullable().describe('Time at which the backoff for these calls ends.'),
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
  at: time.describe('Time of this status.'),
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
      expires_at: time.nullable().describe('Time at which it expires. null if it never expires.'),
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

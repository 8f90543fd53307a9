import * as z from 'zod';
import { LANES } from '../core/words/ticket.ts';
import { GAUGES, MEMBER_GAUGES, type GaugeRow } from './gauges.ts';
import { suggestedLimitsSchema, holdKind, callScopeSchema, type Frozen } from './shared-shapes.ts';
import { waitCauseSchema } from './decisions.ts';

/** The current state of a pool: a group, or one of its partitions. */

type SchemaRow<Shape extends string> = Pick<
  GaugeRow<Shape>,
  'shape' | 'description' | 'unit' | 'nullable' | 'optional'
>;

type Fields<Rows, Shapes> = {
  readonly [Name in keyof Rows]: Rows[Name] extends {
    readonly shape: infer Shape extends keyof Shapes;
  }
    ? OptionalField<Rows[Name], NullableField<Rows[Name], Shapes[Shape]>>
    : never;
};

type NullableField<Row, Schema> = Row extends { readonly nullable: true }
  ? z.ZodNullable<Schema extends z.ZodType ? Schema : never>
  : Schema;

type OptionalField<Row, Schema> = Row extends { readonly optional: true }
  ? z.ZodExactOptional<Schema extends z.ZodType ? Schema : never>
  : Schema;

/** Builds the schema of each row of a table of gauges, from the schemas of its shapes. */
function fieldsOf<
  Rows extends Readonly<Record<string, SchemaRow<keyof Shapes & string>>>,
  Shapes extends Readonly<Record<string, z.ZodType>>,
>(rows: Rows, shapes: Shapes): Fields<Rows, Shapes> {
  const fields = Object.entries(rows).map(([name, row]) => [name, fieldOf(row, shapes)]);
  return Object.fromEntries(fields) as Fields<Rows, Shapes>;
}

function fieldOf(
  { shape, description, unit, nullable, optional }: SchemaRow<string>,
  shapes: Readonly<Record<string, z.ZodType>>,
): z.ZodType {
  let schema = shapes[shape];
  if (schema === undefined) throw new Error(`The shape ${shape} has no schema.`);
  if (nullable === true) schema = schema.nullable();
  if (optional === true) schema = schema.exactOptional();
  return schema.meta({ description, ...(unit !== undefined && { unit }) });
}

const count = z.int().min(0);
const ms = z.number().min(0);
const instant = z.iso.datetime();
const totals = z.record(z.string(), z.number());

const limitStatusSchema = z.object({
  configured: z.number().nullable().describe('Configured slots. null means unlimited.'),
  effective: z
    .number()
    .nullable()
    .describe('Slots that can be granted, as configured or learned. null means unlimited.'),
  source: z
    .enum(['configured', 'built_in', 'unknown', 'learned'])
    .describe(
      'Source of `effective`. `configured`: the configuration. `built_in`: the table of known limits. `unknown`: the default of 64 slots for an unknown provider. `learned`: what the upstream was observed to accept.',
    ),
});

const rateStatusSchema = z.object({
  limit: z.number().describe('The limit, in requests or tokens.'),
  left: z
    .number()
    .describe('Requests or tokens available now. Negative if calls used more than they reserved.'),
});

const spendStatusSchema = z.object({
  hour_usd: z.number().meta({ description: 'Spend in the current UTC hour.', unit: 'USD' }),
  day_usd: z.number().meta({ description: 'Spend in the current UTC day.', unit: 'USD' }),
  month_usd: z.number().meta({ description: 'Spend in the current UTC month.', unit: 'USD' }),
  reserved_usd: z
    .number()
    .meta({ description: 'Estimated cost of the calls in flight.', unit: 'USD' }),
  day_usd_by_key: totals.meta({
    description: 'Spend in the current UTC day by tenant, of the 20 with the highest spend.',
    unit: 'USD',
  }),
  day_usd_by_agent: totals.meta({
    description: 'Spend in the current UTC day by agent run, of the 20 with the highest spend.',
    unit: 'USD',
  }),
});

const memberSpendSchema = spendStatusSchema.omit({ day_usd_by_key: true, day_usd_by_agent: true });

const outSchema = z.object({
  reason: z
    .enum(['unauthorized', 'quota', 'egress'])
    .describe(
      'Cause of the ejection. `unauthorized`: the upstream refused its key. `quota`: its account has no quota left. `egress`: the upstream refuses calls from the location of the Worker.',
    ),
  since: instant.describe('Time of the ejection.'),
  probe_at: instant.describe('Earliest time at which a call may probe the member.'),
});

const pauseSchema = z.object({
  message: z
    .string()
    .nullable()
    .describe('Message of the upstream, shortened and without secrets. null if it sent none.'),
  probe_at: instant
    .nullable()
    .describe(
      'Time from which a call may probe whether the pause is over. null if the pause is not probed, or a probe is in flight.',
    ),
});

export const SCOPES_SHOWN_MAX = 64;

/** What was learned about the calls of one scope at their upstream. */
const scopeStatusSchema = z.object({
  about: callScopeSchema,
  member: z
    .string()
    .exactOptional()
    .describe('Member of these calls. Absent if the group has no members.'),
  in_use: count.meta({ description: 'Slots that these calls hold.', unit: 'slots' }),
  limit: z.number().nullable().meta({
    description:
      'Learned limit of these calls, the lowest if there are several pools. null if only the limit of the group or member applies.',
    unit: 'slots',
  }),
  paused_until: instant
    .nullable()
    .describe('Time at which the pause of these calls ends. null if they are not paused.'),
  pause: pauseSchema.exactOptional().describe('Details of that pause. Absent if there is none.'),
  breaker: z
    .enum(['closed', 'open', 'half_open'])
    .describe('State of the breaker of these calls, the worst if there are several pools.'),
  breaker_until: instant
    .nullable()
    .describe('Time at which an open breaker admits the first probe. null if it is not open.'),
  queued: count.meta({
    description: 'Number of queued calls that this scope holds back.',
    unit: 'calls',
  }),
  last_refused_at: instant.describe(
    'Time at which the upstream last refused these calls, or asked them to wait.',
  ),
});

/** Schemas of the figures that pools and their members have, by the names in the tables of gauges. */
const SHAPES = {
  count,
  instant,
  ms,
  breaker: z.enum(['closed', 'open', 'half_open']),
  limit: limitStatusSchema,
  pause: pauseSchema,
  rates: z.record(z.string(), rateStatusSchema),
  scope: callScopeSchema,
};

/** A place where calls of a group run. Figures of several pools are added up. */
const memberStatusSchema = z.object({
  id: z.string().describe('Id of the member.'),
  upstream: z
    .string()
    .nullable()
    .describe('Id of its upstream. null if the configuration no longer contains the member.'),
  tier: z.int().describe('Configured tier.'),
  weight: z.number().describe('Configured weight.'),
  enabled: z.boolean().describe('If false, the member is disabled and gets no calls.'),
  ...fieldsOf(MEMBER_GAUGES, {
    ...SHAPES,
    number: z.number(),
    ejection: outSchema,
    member_spend: memberSpendSchema,
  }),
  retired: z
    .literal(true)
    .exactOptional()
    .describe(
      'The configuration no longer contains the member. It is listed until its last call has ended.',
    ),
});

const affinityStatusSchema = z.object({
  kept_total: count.describe('Calls granted at the member of their agent or caller.'),
  left_total: count.describe('Calls granted elsewhere because that member had no room in time.'),
  waited_total: count.describe('Calls that waited for that member although another one had room.'),
});

export const upstreamCallsSchema = z.object({
  id: z.string().describe('Id of the upstream.'),
  in_flight: count.meta({ description: 'Number of calls that hold slots for it.', unit: 'calls' }),
  last_call_at: instant.describe(
    'Time at which a call was last granted slots for it, or refused by it.',
  ),
  day_granted: count.describe('Calls granted slots for it in the current UTC day.'),
  day_refusals: totals.describe('Calls that it refused in the current UTC day, by kind.'),
  spend: z
    .object({
      day_usd: z.number().meta({ description: 'Spend in the current UTC day.', unit: 'USD' }),
      month_usd: z.number().meta({ description: 'Spend in the current UTC month.', unit: 'USD' }),
    })
    .nullable()
    .describe('Spend at this upstream. null if none was counted.'),
  last_refusals: z
    .array(
      z.object({
        kind: z.string().describe('Kind of the refusal.'),
        at: instant.describe('Time of the refusal.'),
        retry_after_ms: ms.nullable().meta({
          description: 'Wait that the upstream asked for. null if it asked for none.',
          unit: 'ms',
        }),
        model: z.string().nullable().describe('Model. null if it is unknown.'),
        status: z
          .int()
          .exactOptional()
          .describe('Status of its response. Absent if there was none, or the call has not ended.'),
        message: z
          .string()
          .exactOptional()
          .describe(
            'Message of the response, shortened and without secrets. Absent if there was none.',
          ),
      }),
    )
    .describe('Last refusal of each kind.'),
});

export const limitsSeenSchema = z.object({
  upstream: z.string().describe('Upstream that reported them.'),
  model: z.string().nullable().describe('Model of the calls. null if it is unknown.'),
  limits: suggestedLimitsSchema,
  at: instant.describe('Time at which they were first reported.'),
});

/** Figures of the last hour. They come from the history, so they outlive a reset. */
const lastHourSchema = z.object({
  granted: count.describe('Number of granted calls.'),
  rejected: totals.describe('Calls rejected by Headgate, by reason.'),
  refusals: totals.describe('Refusals of the upstream, by kind.'),
  // Lists of numbers, because every message of the feed contains them for every group.
  steps: z
    .object({
      refused: z
        .array(count.nullable())
        .describe(
          'Refusals of the upstream because of its limits. null before the group recorded anything.',
        ),
      wait_p95_ms: z.array(ms.nullable()).meta({
        description: '95th percentile of the waits. null if no call was granted.',
        unit: 'ms',
      }),
    })
    .describe(
      'The same hour in 12 steps of five clock minutes, the current one last. Empty if there was no activity.',
    ),
});

/** Time that `lately` covers, and time for which a pool counts as failing after its last failed call. */
export const NOTHING_LATELY_AFTER_MS = 600_000;
export const NOT_FAILING_AFTER_MS = 120_000;

/** Results of recent calls, by clock minutes. */
const latelySchema = z.object({
  served: count.describe('Calls served in the last 10 minutes.'),
  served_at: instant
    .nullable()
    .describe(
      'End of the last minute in which a call was served. null if there is none in the 10 minutes.',
    ),
  failing_since: instant
    .nullable()
    .describe(
      'Start of the first minute after `served_at` in which a call failed, was refused or was answered with an error status. null if there is none.',
    ),
  failed_at: instant
    .nullable()
    .describe(
      'End of the last such minute, or now if it is the current one. null if there is none.',
    ),
  is_failing: z
    .boolean()
    .describe(
      'Whether calls currently fail: none was served for at least a minute, and the last failure is less than 2 minutes ago. A failure is a call that failed, was refused or was answered with an error status.',
    ),
  refusals: totals.describe('Refusals of the upstream since `failing_since`, by kind.'),
  rejected: totals.describe('Calls rejected by Headgate since then, by reason.'),
  ended: totals.describe(
    'Calls that ended since then, by outcome: `failed`, `refused` by the upstream, `cancelled` by their callers, or `unused`.',
  ),
  answered_errors: totals
    .exactOptional()
    .describe(
      'Calls since then that the upstream answered with an error status that concerns neither its limits nor its health, by status, such as `401`. Some are combined, such as `4xx`. Absent if there are none.',
    ),
});

/** The state of a pool except its name. Figures of several pools are added up. */
export const gaugesSchema = z.object(
  fieldsOf(GAUGES, {
    ...SHAPES,
    flag: z.boolean(),
    tally: totals,
    word: z.string(),
    affinity: affinityStatusSchema,
    budget: z.object({
      window: z.enum(['hour', 'day', 'month']).describe('Period in UTC.'),
      limit_usd: z.number().meta({ description: 'The budget.', unit: 'USD' }),
    }),
    lanes: z.object({
      high: count.meta({ description: 'Queued calls of lane `high`.', unit: 'calls' }),
      normal: count.meta({ description: 'Queued calls of lane `normal`.', unit: 'calls' }),
      low: count.meta({ description: 'Queued calls of lane `low`.', unit: 'calls' }),
    }),
    last_hour: lastHourSchema,
    lately: latelySchema,
    limits_seen: z.array(limitsSeenSchema),
    members: z.array(memberStatusSchema),
    scopes: z.array(scopeStatusSchema).max(SCOPES_SHOWN_MAX),
    spend: spendStatusSchema,
    upstreams: z.array(upstreamCallsSchema),
  }),
);

const poolStatusSchema = gaugesSchema.extend({
  group: z.string().describe('Name of the group.'),
  partition: z.string().nullable().describe('Partition. null if the group is not split.'),
});

export const leaseInfoSchema = z.object({
  kind: holdKind('Kind of the holder'),
  id: z.string().describe('Id of the lease, as in the header `headgate-lease`.'),
  caller: z.string().describe('Id of the gateway key, or fingerprint of the provider key.'),
  tenant: z.string().describe('Tenant that it is charged to.'),
  agent: z.string().nullable().describe('Agent run. null if there is none.'),
  lane: z.enum(LANES).describe('Lane in which it was granted.'),
  slots: count.meta({ description: 'Slots that it holds.', unit: 'slots' }),
  upstream: z.string().describe('Upstream of the call.'),
  member: z
    .string()
    .exactOptional()
    .describe('Member that runs the call. Absent if the group has no members.'),
  model: z.string().nullable().describe('Model. null if it is unknown.'),
  granted_at: instant.describe('Time at which it was granted.'),
  age_ms: ms.meta({ description: 'Time for which it has been held.', unit: 'ms' }),
  expires_at: instant.describe('Time at which it expires unless its holder renews it.'),
  state: z
    .enum(['held', 'revoking', 'cooling'])
    .describe(
      '`held`: a call holds it. `revoking`: an operator is revoking it. `cooling`: its call has ended, and its slots are in cool-down.',
    ),
});

/** A queued call, or another waiter for a slot. */
export const waiterInfoSchema = z.object({
  kind: holdKind('Kind of the waiter'),
  ticket: z.string().describe('Id of the ticket.'),
  lane: z.enum(LANES).describe('Lane of the waiter.'),
  tenant: z.string().describe('Tenant that it is charged to.'),
  agent: z.string().nullable().describe('Agent run. null if there is none.'),
  upstream: z.string().describe('Upstream of the call.'),
  model: z.string().nullable().describe('Model. null if it is unknown.'),
  slots: count.meta({ description: 'Requested slots.', unit: 'slots' }),
  waited_ms: ms.meta({ description: 'Time that it has waited.', unit: 'ms' }),
  position: count.describe('Number of waiters that will probably be granted before this one.'),
  estimate_ms: ms.nullable().meta({
    description:
      'Estimated remaining wait. null if it is unknown. See `stalled_ms` of the group, and `waits_for`.',
    unit: 'ms',
  }),
  waits_for: waitCauseSchema.describe('Current wait reason.'),
  scope: callScopeSchema
    .exactOptional()
    .describe('Calls to which this reason applies. Absent if it applies to all calls.'),
  cap: z
    .enum(['tenant', 'agent', 'probe'])
    .exactOptional()
    .describe(
      'The limit, if `waits_for` is `cap`. `tenant`, `agent`: the limit of its tenant or agent run. `probe`: calls of several groups probe an upstream one at a time. Absent for other reasons.',
    ),
  needs: z
    .array(z.string())
    .exactOptional()
    .describe(
      'Other pools in which it still needs slots. It holds none there, and waits only here. Absent if there are none.',
    ),
  promoted: z
    .boolean()
    .describe(
      'Whether it goes first: an operator promoted it, or it was granted before and released its slot because another group was full.',
    ),
  excluded_members: z
    .array(z.string())
    .exactOptional()
    .describe('Members that refused it, or cannot run it. Absent if there are none.'),
  waits_for_member: z
    .string()
    .exactOptional()
    .describe(
      'Member that it waits for, by affinity, although another one has room. Absent if there is none.',
    ),
});

export type PauseStatus = Frozen<z.output<typeof pauseSchema>>;
export type PoolStatus = Frozen<z.output<typeof poolStatusSchema>>;
export type RateStatus = Frozen<z.output<typeof rateStatusSchema>>;
export type SpendStatus = Frozen<z.output<typeof spendStatusSchema>>;
export type LastHour = Frozen<z.output<typeof lastHourSchema>>;
export type Lately = Frozen<z.output<typeof latelySchema>>;
export type UpstreamCallsStatus = Frozen<z.output<typeof upstreamCallsSchema>>;
export type ScopeStatus = Frozen<z.output<typeof scopeStatusSchema>>;
export type MemberStatus = Frozen<z.output<typeof memberStatusSchema>>;
export type LeaseInfo = Frozen<z.output<typeof leaseInfoSchema>>;
export type WaiterInfo = Frozen<z.output<typeof waiterInfoSchema>>;
export type LimitsSeenStatus = Frozen<z.output<typeof limitsSeenSchema>>;

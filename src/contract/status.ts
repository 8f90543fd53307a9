import * as z from 'zod';
import { suggestedLimitsSchema } from './admin/suggestion-schemas.ts';
import { LANES } from '../core/words/ticket.ts';
import { waitCauseSchema } from './decisions.ts';
import type { Frozen } from './frozen.ts';
import { holdKind } from './hold-kind.ts';
import { callScopeSchema } from './scope.ts';

/** The state of a pool of slots at one moment: a group, or one partition of it. */

const count = z.int().min(0);
const ms = z.number().min(0);
const instant = z.iso.datetime();
const totals = z.record(z.string(), z.number());

const limitStatusSchema = z.object({
  configured: z
    .number()
    .nullable()
    .describe('Slots that the configuration sets. Null: it sets no bound.'),
  effective: z
    .number()
    .nullable()
    .describe('Slots that can be granted, with what was learned. Null: any number.'),
  source: z
    .enum(['configured', 'built_in', 'unknown', 'learned'])
    .describe(
      'Where `effective` comes from: the configuration, the table of known limits, the 64 of an unknown provider, or what the upstream has shown to take.',
    ),
});

const rateStatusSchema = z.object({
  limit: z.number().describe('The limit, in requests or tokens.'),
  left: z
    .number()
    .describe('Requests or tokens that may go at once now. Below 0: more was used than reserved.'),
});

const spendStatusSchema = z.object({
  hour_usd: z.number().meta({ description: 'Spent in the present hour of UTC.', unit: 'USD' }),
  day_usd: z.number().meta({ description: 'Spent in the present day of UTC.', unit: 'USD' }),
  month_usd: z.number().meta({ description: 'Spent in the present month of UTC.', unit: 'USD' }),
  reserved_usd: z.number().meta({ description: 'Estimates of what is in flight.', unit: 'USD' }),
  day_usd_by_key: totals.meta({
    description: 'Cost of this day by tenant, of the 20 who spent most.',
    unit: 'USD',
  }),
  day_usd_by_agent: totals.meta({
    description: 'Cost of this day by agent run, of the 20 that spent most.',
    unit: 'USD',
  }),
});

const memberSpendSchema = spendStatusSchema.omit({ day_usd_by_key: true, day_usd_by_agent: true });

const outSchema = z.object({
  reason: z
    .enum(['unauthorized', 'quota', 'egress'])
    .describe(
      'Why: its key was refused, its account has nothing left, or calls from where the Worker runs are refused.',
    ),
  since: instant.describe('Since when.'),
  probe_at: instant.describe('From when a call may probe whether it serves again.'),
});

/** A pause that the upstream asked for. */
const pauseSchema = z.object({
  message: z
    .string()
    .nullable()
    .describe('Message of the upstream, shortened and without secrets. null if it sent none.'),
  probe_at: instant
    .nullable()
    .describe(
      'When the next call may probe the pause. null if no call will, or a probe is in flight.',
    ),
});

/** Maximum scopes that a status lists. */
export const SCOPES_SHOWN_MAX = 64;

/** Lessons about the calls of one scope at their upstream. */
const scopeStatusSchema = z.object({
  about: callScopeSchema,
  member: z
    .string()
    .exactOptional()
    .describe('The member whose calls these are. Absent if the group has no members.'),
  in_use: count.meta({ description: 'Slots that these calls hold.', unit: 'slots' }),
  limit: z.number().nullable().meta({
    description:
      'Learned limit of these calls, the lowest if there are several pools. null if only the limit of the group or member applies.',
    unit: 'slots',
  }),
  paused_until: instant
    .nullable()
    .describe('When the pause of these calls ends. null if they are not paused.'),
  pause: pauseSchema.exactOptional().describe('Details of that pause. Absent if there is none.'),
  breaker: z
    .enum(['closed', 'open', 'half_open'])
    .describe('State of the breaker of these calls, the worst if there are several pools.'),
  breaker_until: instant
    .nullable()
    .describe('When an open breaker admits the first probe. null if it is not open.'),
  queued: count.meta({
    description: 'Queued calls that this scope holds now.',
    unit: 'calls',
  }),
  last_refused_at: instant.describe(
    'When the upstream last refused these calls, or asked them to wait.',
  ),
});

/** A place where calls of a group run. Of several pools the figures are added up. */
const memberStatusSchema = z.object({
  id: z.string().describe('Id of the member.'),
  upstream: z
    .string()
    .nullable()
    .describe('Id of its upstream. Null: the configuration does not name the member any more.'),
  tier: z.int().describe('Its tier, as configured.'),
  weight: z.number().describe('Its weight, as configured.'),
  enabled: z
    .boolean()
    .describe(
      'False: switched off, by an operator who took it out or otherwise. It gets no calls.',
    ),
  limit: limitStatusSchema.describe('Its limit of slots. Of a split group that of each partition.'),
  in_use: count.meta({ description: 'Slots that calls hold there.', unit: 'slots' }),
  cooling: count.meta({
    description: 'Slots that are kept back for a while after their call.',
    unit: 'slots',
  }),
  unclaimed: count.meta({
    description:
      'Slots that may have been handed out there before the last reset, and of which nobody has been heard yet.',
    unit: 'slots',
  }),
  paused_until: instant
    .nullable()
    .describe('When the upstream backoff ends. null if there is none.'),
  pause: pauseSchema.exactOptional().describe('Details of that pause. Absent if there is none.'),
  breaker: z
    .enum(['closed', 'open', 'half_open'])
    .describe('Its breaker. Of several pools the worst is told.'),
  breaker_until: instant
    .nullable()
    .describe('When an open breaker admits the first probe. null if it is not open.'),
  about: callScopeSchema
    .exactOptional()
    .describe(
      'The calls to which `paused_until`, `breaker` and a learned `limit` of this member apply. Absent if they apply to all of its calls.',
    ),
  out: outSchema
    .nullable()
    .describe(
      'The refusal for which it gets no calls until it serves again. Null: it is in. Of several pools, one.',
    ),
  rates: z
    .record(z.string(), rateStatusSchema)
    .nullable()
    .describe('Its limits of requests and tokens. Null: several pools, which have their own.'),
  spend: memberSpendSchema.nullable().describe('Its cost. Null: it is not counted here.'),
  granted_total: count.describe('Calls granted there since the instance began.'),
  refused_total: count.describe('Calls that its upstream refused since then.'),
  input_tokens_total: z.number().describe('Tokens of its requests since then.'),
  output_tokens_total: z.number().describe('Tokens of its answers since then.'),
  cost_usd_total: z.number().meta({ description: 'Cost of its calls since then.', unit: 'USD' }),
  retired: z
    .literal(true)
    .exactOptional()
    .describe('The configuration names it no more: it is shown until its last call has ended.'),
});

const affinityStatusSchema = z.object({
  kept_total: count.describe('Calls granted at the member that their agent or caller belongs to.'),
  left_total: count.describe('Calls granted elsewhere, because that one had no room in time.'),
  waited_total: count.describe('Calls that waited for it though another one had room.'),
});

/** The calls of a group that went to one upstream. */
export const upstreamCallsSchema = z.object({
  id: z.string().describe('Id of the upstream.'),
  in_flight: count.meta({ description: 'Calls that hold slots for it.', unit: 'calls' }),
  last_call_at: instant.describe('When a call was granted slots for it last, or refused by it.'),
  day_granted: count.describe('Calls granted slots for it in the present day of UTC.'),
  day_refusals: totals.describe('Calls that it refused in this day, by kind.'),
  spend: z
    .object({
      day_usd: z.number().meta({ description: 'Cost of this day of UTC.', unit: 'USD' }),
      month_usd: z.number().meta({ description: 'Cost of this month of UTC.', unit: 'USD' }),
    })
    .nullable()
    .describe('Cost of calls there. Null: nothing was counted.'),
  last_refusals: z
    .array(
      z.object({
        kind: z.string().describe('Kind of the refusal.'),
        at: instant.describe('When.'),
        retry_after_ms: ms
          .nullable()
          .meta({ description: 'The wait it asked for. Null: none.', unit: 'ms' }),
        model: z.string().nullable().describe('The model. Null: not known.'),
        status: z
          .int()
          .exactOptional()
          .describe('Status of its answer. Absent: none came, or its call has not ended.'),
        message: z
          .string()
          .exactOptional()
          .describe('Its message, shortened and without secrets. Absent if it sent none.'),
      }),
    )
    .describe('Its last refusal of each kind.'),
});

/** Limits of an upstream, as the headers of its answers tell them. */
export const limitsSeenSchema = z.object({
  upstream: z.string().describe('The upstream that told them.'),
  model: z.string().nullable().describe('The model whose calls were told so. Null: not known.'),
  limits: suggestedLimitsSchema,
  at: instant.describe('When they were first told so.'),
});

/** Figures of the last hour, which come from the history and so outlive a reset. */
const lastHourSchema = z
  .object({
    granted: count.describe('Calls granted.'),
    rejected: totals.describe('Calls refused here, by reason.'),
    refusals: totals.describe('Refusals of the upstream, by kind.'),
    // A list of numbers each: every word of the feed has them, for every group.
    steps: z
      .object({
        refused: z
          .array(count.nullable())
          .describe(
            'Refusals of the upstream for its limits. Null: before the group recorded anything.',
          ),
        wait_p95_ms: z.array(ms.nullable()).meta({
          description: '95th percentile of the waits. Null: no call was granted.',
          unit: 'ms',
        }),
      })
      .describe(
        'The same hour in 12 steps of five minutes by the clock, the present one last. Empty: nothing was.',
      ),
  })
  .describe(
    'The last 60 minutes by the clock, the present one among them. Of an idle group: of when it was used last, until that is an hour ago.',
  );

/** How far back `lately` reaches, and how long a pool counts as failing after its last call that failed. */
export const NOTHING_LATELY_AFTER_MS = 600_000;
export const NOT_FAILING_AFTER_MS = 120_000;

/** How the calls of the last minutes fared, by minutes of the clock. */
const latelySchema = z
  .object({
    served: count.describe('Calls that were served in the last 10 minutes.'),
    served_at: instant
      .nullable()
      .describe('End of the last minute in which a call was served. null: in none of the 10.'),
    failing_since: instant
      .nullable()
      .describe(
        'Start of the first minute after `served_at` in which a call failed, was refused or was answered with an error status. null: in none.',
      ),
    failed_at: instant
      .nullable()
      .describe('End of the last such minute, or now if it is not over. null: there is none.'),
    is_failing: z
      .boolean()
      .describe(
        'All calls of the last minute failed, were refused or were answered with an error status: none was served for a minute or longer, and the last failure is at most 2 minutes ago.',
      ),
    refusals: totals.describe('Refusals of the upstream since `failing_since`, by kind.'),
    rejected: totals.describe('Calls refused by Headgate since then, by reason.'),
    ended: totals.describe(
      'Calls that ended since then, by outcome: `failed`, `refused` by the upstream, `cancelled` by their callers, `unused`.',
    ),
    answered_errors: totals
      .exactOptional()
      .describe(
        'Calls since then that the upstream answered with an error status that is about neither its limits nor its health, by status, as in `401`. Some are counted together, as in `4xx`. Absent: none.',
      ),
  })
  .describe('How the calls of the last 10 minutes fared.');

/** Everything that is told of a pool beside its name. Of several pools the figures are added up. */
export const gaugesSchema = z.object({
  limit: limitStatusSchema.describe('The limit of slots. Of a split group that of each partition.'),
  in_use: count.meta({ description: 'Slots that calls hold.', unit: 'slots' }),
  cooling: count.meta({
    description: 'Slots that are kept back for a while after their call.',
    unit: 'slots',
  }),
  cooldown_ms: ms.meta({
    description:
      'How long a slot is kept back after a call that ended well: as configured, or as learned of an upstream that counts calls for longer. Of several pools the longest.',
    unit: 'ms',
  }),
  unclaimed: count.meta({
    description:
      'Slots that may have been handed out before the last reset of this pool, and of which nobody has been heard yet. They are not free, and are not part of `in_use`.',
    unit: 'slots',
  }),
  unclaimed_until: instant
    .nullable()
    .describe('When those are free unless their calls come back before. Null: there are none.'),
  lent: count.meta({
    description:
      'Slots that Workers were lent, to start calls on without asking, and that no call uses, as of the last second. They are not free, and are not part of `in_use`.',
    unit: 'slots',
  }),
  queued: count.meta({ description: 'Calls that wait.', unit: 'calls' }),
  queued_by_lane: z
    .object({
      high: count.meta({ description: 'Calls that wait in lane high.', unit: 'calls' }),
      normal: count.meta({ description: 'Calls that wait in lane normal.', unit: 'calls' }),
      low: count.meta({ description: 'Calls that wait in lane low.', unit: 'calls' }),
    })
    .describe('Calls that wait, by lane.'),
  waiting_for: totals
    .exactOptional()
    .describe(
      'Calls that wait, by what each waits for now; of each pool the 2,000 that came first. Absent: none waits, or the object is of an older release.',
    ),
  needed_elsewhere: totals
    .exactOptional()
    .describe(
      'Calls that wait here, by the other pools that they also need slots of: they hold none there. Absent: there are none.',
    ),
  stalled_ms: ms.nullable().exactOptional().meta({
    description:
      'How long no call has ended while calls hold slots, if that is so long that waits for slots cannot be estimated. null: calls end, or none runs. Of several pools the longest. Absent: the object is of an older release.',
    unit: 'ms',
  }),
  oldest_wait_ms: ms.meta({
    description: 'How long the call has waited that waits longest; 0: none waits.',
    unit: 'ms',
  }),
  wait_p50_ms: ms.nullable().meta({
    description:
      'Median wait of the calls granted in the last five minutes. Null: there were none.',
    unit: 'ms',
  }),
  wait_p95_ms: ms.nullable().meta({
    description: '95th percentile of those waits. Null: there were none.',
    unit: 'ms',
  }),
  paused: z.boolean().describe('An operator paused it.'),
  paused_until: instant
    .nullable()
    .describe(
      'When the upstream backoff ends, after a refusal or because a limit is nearly used up. null if there is none.',
    ),
  pause: pauseSchema
    .exactOptional()
    .describe(
      'Details of that pause, the longest if there are several pools. Absent if there is none.',
    ),
  breaker: z
    .enum(['closed', 'open', 'half_open'])
    .describe('The breaker. Of several pools the worst is told.'),
  breaker_until: instant
    .nullable()
    .describe('When an open breaker admits the first probe. null if it is not open.'),
  about: callScopeSchema
    .exactOptional()
    .describe(
      'The calls to which `paused_until`, `breaker` and a learned `limit` apply. Other calls start at once. Absent if they apply to all calls of the pool.',
    ),
  scopes: z
    .array(scopeStatusSchema)
    .max(SCOPES_SHOWN_MAX)
    .exactOptional()
    .describe(
      'State of some of the calls: those of a model, a service tier, or a caller’s own key. Each scope holds only its own calls. At most 64, those that hold calls first, then by their last refusal. Absent if there are none.',
    ),
  refusals_total: totals.describe(
    'Refusals of the upstream since the instance began, by kind. For a time that is known: `last_hour`.',
  ),
  rates: z
    .record(z.string(), rateStatusSchema)
    .nullable()
    .describe(
      'Limits of requests and tokens by their names in the configuration. Null: several pools, which have their own.',
    ),
  spend: spendStatusSchema
    .nullable()
    .describe('Cost in the present hour, day and month of UTC. Null: it is not counted here.'),
  draining: z.boolean().describe('New calls are refused.'),
  dry_run: z.boolean().describe('It decides and counts, and lets everything pass.'),
  granted_total: count.describe('Calls granted since the instance began.'),
  rejected_total: totals.describe('Calls refused since then, by reason.'),
  would_wait_total: count.describe('In a dry run: calls that would not have been granted at once.'),
  expired_total: count.describe(
    'Leases whose holder was gone, taken back at the end of their TTL, since the instance began.',
  ),
  resurrected_total: count.describe(
    'Streams taken up again after their lease had lapsed, and first calls of new keys of an account.',
  ),
  passed_unlimited_total: count.describe(
    'Calls that passed without a slot while the group could not be reached.',
  ),
  passed_unlimited_at: z.iso
    .datetime()
    .exactOptional()
    .describe('Time at which the group last heard of such calls. Absent: it has heard of none.'),
  members: z
    .array(memberStatusSchema)
    .exactOptional()
    .describe('The places where its calls run. Absent: the group names none.'),
  affinity: affinityStatusSchema
    .exactOptional()
    .describe(
      'How calls that belong to a member fared since the instance began. Absent: the group names no members.',
    ),
  upstreams: z
    .array(upstreamCallsSchema)
    .describe(
      'The upstreams that its calls went to, at most 32 of each pool. It outlives a reset, but for the last seconds before it.',
    ),
  limits_seen: z
    .array(limitsSeenSchema)
    .exactOptional()
    .describe(
      'Limits that upstreams have told in headers, at most 16 of each pool. Absent: none were seen.',
    ),
  budget_spent: z
    .object({
      window: z.enum(['hour', 'day', 'month']).describe('The period, by UTC.'),
      limit_usd: z.number().meta({ description: 'The budget.', unit: 'USD' }),
    })
    .nullable()
    .describe(
      'The budget for which calls are refused: it is spent, or did not have room for the last call that asked. Null: none, as far as is known.',
    ),
  rate_used_up: z
    .string()
    .nullable()
    .describe(
      'The limit of requests or tokens that calls wait for, or that has nothing left for the next one. Null: none.',
    ),
  last_hour: lastHourSchema,
  lately: latelySchema
    .exactOptional()
    .describe(
      'How the calls of the last 10 minutes fared. Absent: there were none, or the pool is of an older release.',
    ),
  as_of: instant
    .exactOptional()
    .describe(
      'When an idle group said this. Nobody has held or awaited a slot there since, and it was not woken for this answer: limits, what is left of them, spend and ages are those of now, the rest is as it said. Absent: it was asked just now, or was never used.',
    ),
  idle_ms: ms.meta({
    description:
      'How long nobody has held or awaited a slot, to within a minute; 0 while somebody does.',
    unit: 'ms',
  }),
});

const poolStatusSchema = gaugesSchema.extend({
  group: z.string().describe('The group.'),
  partition: z.string().nullable().describe('The partition. Null: the group is not split.'),
});

/** A slot that is held. */
export const leaseInfoSchema = z.object({
  kind: holdKind('What holds it'),
  id: z.string().describe('Id of the lease, as in the header `headgate-lease`.'),
  caller: z.string().describe('Id of the gateway key, or fingerprint of the provider key.'),
  tenant: z.string().describe('The tenant that it is charged to.'),
  agent: z.string().nullable().describe('The agent run. Null: the call belongs to none.'),
  lane: z.enum(LANES).describe('The lane in which it was granted.'),
  slots: count.meta({ description: 'Slots that it takes.', unit: 'slots' }),
  upstream: z.string().describe('The upstream that the call goes to.'),
  member: z
    .string()
    .exactOptional()
    .describe('The member where its call runs. Absent: the group names none.'),
  model: z.string().nullable().describe('The model. Null: not known.'),
  granted_at: instant.describe('When it was granted.'),
  age_ms: ms.meta({ description: 'How long it has been held.', unit: 'ms' }),
  expires_at: instant.describe('When it is taken back unless its holder renews it.'),
  state: z
    .enum(['held', 'revoking', 'cooling'])
    .describe(
      'Held by a call, being taken back by an operator, or kept back for a while after its call.',
    ),
});

/** A call, or another holder to be, that waits for a slot. */
export const waiterInfoSchema = z.object({
  kind: holdKind('What waits'),
  ticket: z.string().describe('Id of the ticket.'),
  lane: z.enum(LANES).describe('The lane in which it waits.'),
  tenant: z.string().describe('The tenant that it is charged to.'),
  agent: z.string().nullable().describe('The agent run. Null: the call belongs to none.'),
  upstream: z.string().describe('The upstream that the call goes to.'),
  model: z.string().nullable().describe('The model. Null: not known.'),
  slots: count.meta({ description: 'Slots that it asks for.', unit: 'slots' }),
  waited_ms: ms.meta({ description: 'How long it has waited.', unit: 'ms' }),
  position: count.describe('Waiters that will probably be granted before this one.'),
  estimate_ms: ms.nullable().meta({
    description:
      'How long it will probably wait from now on. null if nothing is known of it: see `stalled_ms` of the group, and `waits_for`.',
    unit: 'ms',
  }),
  waits_for: waitCauseSchema
    .exactOptional()
    .describe('Why it waits now. Absent: the object is of an older release.'),
  scope: callScopeSchema
    .exactOptional()
    .describe('The calls that this reason applies to. Absent if they are all calls.'),
  cap: z
    .enum(['tenant', 'agent', 'probe'])
    .exactOptional()
    .describe(
      'The limit, if it waits for `cap`: that of its tenant, that of its agent, or that only one call of several groups probes an upstream. Absent: another reason.',
    ),
  needs: z
    .array(z.string())
    .exactOptional()
    .describe(
      'Other pools that it needs slots of and holds none of: it waits only here. Absent: none.',
    ),
  promoted: z
    .boolean()
    .describe(
      'It goes first: an operator put it first, or its turn came before and it gave the slot back, as another group was full.',
    ),
  excluded_members: z
    .array(z.string())
    .exactOptional()
    .describe('Members that refused it, or cannot take it. Absent: none.'),
  waits_for_member: z
    .string()
    .exactOptional()
    .describe(
      'The member that it belongs to and waits for, though another has room. Absent: it waits for none.',
    ),
});

/** Fields that a pool of the release before does not tell, as they are to be read then. */
export const NOT_REPORTED_BEFORE = {
  cooldown_ms: 0,
  unclaimed: 0,
  unclaimed_until: null,
  lent: 0,
  upstreams: [],
  budget_spent: null,
  rate_used_up: null,
  last_hour: {
    granted: 0,
    rejected: {},
    refusals: {},
    steps: { refused: [], wait_p95_ms: [] },
  },
} as const;

/** One pool of slots: a group, or one partition of it. */
export type PauseStatus = Frozen<z.output<typeof pauseSchema>>;
export type PoolStatus = Frozen<z.output<typeof poolStatusSchema>>;
/** One limit of requests or tokens. */
export type RateStatus = Frozen<z.output<typeof rateStatusSchema>>;
/** Cost of the present hour, day and month. */
export type SpendStatus = Frozen<z.output<typeof spendStatusSchema>>;
/** Figures of the last hour. */
export type LastHour = Frozen<z.output<typeof lastHourSchema>>;
/** How the calls of the last minutes fared. */
export type Lately = Frozen<z.output<typeof latelySchema>>;
export type UpstreamCallsStatus = Frozen<z.output<typeof upstreamCallsSchema>>;
/** Lessons about the calls of one scope. */
export type ScopeStatus = Frozen<z.output<typeof scopeStatusSchema>>;
export type MemberStatus = Frozen<z.output<typeof memberStatusSchema>>;
export type LeaseInfo = Frozen<z.output<typeof leaseInfoSchema>>;
export type WaiterInfo = Frozen<z.output<typeof waiterInfoSchema>>;
/** Limits that an upstream has told. */
export type LimitsSeenStatus = Frozen<z.output<typeof limitsSeenSchema>>;

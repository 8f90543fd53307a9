import * as z from 'zod';
import type { Decision, PassedOver, PlacedBy, WaitCause } from '../core/parts/decision-log.ts';
import type { Rejection } from '../core/words/rejection.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import { LANES } from '../core/words/ticket.ts';
import { holdKind } from './hold-kind.ts';
import { callScopeSchema } from './scope.ts';
import type { Frozen } from './frozen.ts';

/**
 * Decisions of a pool, as they are told. Their words are the core's, which knows no schema: `satisfies` holds
 * each list to the core's type, and the pool that tells a decision the core's type to the list.
 */

const ms = z.number().min(0);
const count = z.int().min(0);
const retryAfterMs = z
  .number()
  .meta({ description: 'When another try may succeed.', unit: 'ms from the decision' });
const never = z.null().describe('Null: another try will not help for long.');

const stoppedScope = z
  .object({
    model: z.string().nullable().describe('The model. null means any.'),
    tier: z.string().nullable().describe('The service tier. null means any.'),
    credential: z
      .string()
      .nullable()
      .describe("Fingerprint of a caller's own provider key. null means any."),
  })
  .exactOptional()
  .describe('The calls that the upstream refuses. Absent if it refuses all.');

const rejectionSchema = z.discriminatedUnion('reason', [
  z.object({
    reason: z.literal('queue_full').describe('The queue is as full as it may be.'),
    queueLengthMax: z.number().meta({ description: 'The bound that it is at.', unit: 'calls' }),
    of: z.enum(['group', 'tenant', 'agent']).describe('Whose bound it is.'),
    dropped: z
      .enum(['lane', 'share', 'returned', 'held'])
      .optional()
      .describe(
        'Why a queued call lost its place to another call: to a higher lane, to a tenant with fewer queued calls for its weight, to a call that had the place before a reset, or to a call of the same tenant that no scope holds. Absent if the call was refused on arrival.',
      ),
    retryAfterMs,
  }),
  z.object({
    reason: z.literal('queue_timeout').describe('The call waited until its deadline.'),
    waitedMs: z.number().meta({ description: 'How long it waited.', unit: 'ms' }),
    retryAfterMs,
    scope: stoppedScope,
  }),
  z.object({
    reason: z.literal('infeasible').describe('The wait would outlast the deadline.'),
    estimateMs: z.number().meta({ description: 'How long it would wait.', unit: 'ms' }),
    isStalled: z
      .literal(true)
      .exactOptional()
      .describe('No call had ended for long, so that it is at least so much. Absent: calls ended.'),
    retryAfterMs,
    scope: stoppedScope,
  }),
  z.object({
    reason: z.literal('busy').describe('No slot was free, and the call did not allow queueing.'),
    slotsMax: z
      .number()
      .meta({ description: 'Slots of the pool, or of the calls in `scope`.', unit: 'slots' }),
    retryAfterMs,
    scope: stoppedScope,
  }),
  z.object({
    reason: z.literal('paused').describe('The pool is paused until the deadline.'),
    waitedMs: z.number().meta({ description: 'How long it waited.', unit: 'ms' }),
    retryAfterMs: retryAfterMs.nullable(),
    until: z
      .number()
      .nullable()
      .exactOptional()
      .describe('When the upstream wants calls again, in epoch ms. Null: an operator paused it.'),
    scope: stoppedScope,
  }),
  z.object({
    reason: z
      .literal('upstream_limited')
      .describe('The upstream refuses calls because of its own limit until after the deadline.'),
    waitedMs: z.number().meta({ description: 'How long it waited.', unit: 'ms' }),
    retryAfterMs: retryAfterMs.nullable(),
    until: z.number().describe('When the limit ends, in epoch ms.'),
    probeAt: z
      .number()
      .nullable()
      .describe('When the next call probes the limit, in epoch ms. null if no call will.'),
    words: z
      .string()
      .nullable()
      .describe('Message of the upstream, shortened and without secrets. null if it sent none.'),
    scope: stoppedScope,
  }),
  z.object({
    reason: z.literal('breaker_open').describe('The upstream failed too often.'),
    retryAfterMs: retryAfterMs.nullable(),
    scope: stoppedScope,
  }),
  z.object({
    reason: z.literal('members_out').describe('Every member is out, or has refused the call.'),
    retryAfterMs: retryAfterMs.nullable(),
  }),
  z.object({
    reason: z
      .literal('budget_exhausted')
      .describe('The call does not fit into what is left of a budget.'),
    window: z.enum(['hour', 'day', 'month']).describe('The budget of which window.'),
    limitUsd: z.number().meta({ description: 'The budget.', unit: 'USD' }),
    leftUsd: z.number().exactOptional().meta({
      description:
        'What was left of it, with calls in flight counted as spent. Absent: an older release decided.',
      unit: 'USD',
    }),
    wantedUsd: z.number().exactOptional().meta({
      description: 'What the call was estimated to cost. Absent: an older release decided.',
      unit: 'USD',
    }),
    retryAfterMs: never,
  }),
  z.object({
    reason: z.literal('draining').describe('The group takes no new calls.'),
    retryAfterMs,
  }),
  z.object({
    reason: z.literal('cancelled').describe('An operator took the call out of the queue.'),
    retryAfterMs: never,
  }),
  z.object({
    reason: z.literal('nested').describe('The call would wait for its own parent.'),
    retryAfterMs: never,
  }),
  z.object({
    reason: z.literal('never_fits').describe('The call is larger than the group ever lets pass.'),
    slotsPerCallMax: z.number().meta({ description: 'Slots of one call.', unit: 'slots' }),
    exceeded: z
      .object({
        limit: z
          .enum(['rpm', 'tpm', 'itpm', 'otpm', 'rpd', 'tpd', 'startsPerS'])
          .describe('Name of the limit.'),
        limitAmount: z.number().describe('The limit, in requests or tokens.'),
        amount: z.number().describe('What the call needs of it.'),
      })
      .exactOptional()
      .describe('The limit that the call alone is larger than. Absent: it is about slots.'),
    retryAfterMs: never,
  }),
]) satisfies z.ZodType<Rejection>;

/** Causes for which a call waits. */
export const waitCauseSchema = z.enum([
  'operator_pause',
  'upstream_pause',
  'breaker',
  'members_out',
  'settling',
  'cap',
  'slots',
  'rates',
  'member',
  'order',
  'elsewhere',
]) satisfies z.ZodType<WaitCause>;

const placedBySchema = z.enum([
  'sole',
  'affinity',
  'left',
  'load',
  'dry_run',
]) satisfies z.ZodType<PlacedBy>;

const passedOverSchema = z.enum([
  'excluded',
  'out',
  'disabled',
  'paused',
  'breaker',
  'budget',
  'slots',
  'rates',
  'tier',
  'load',
]) satisfies z.ZodType<PassedOver>;

/** Where a call went, and why not elsewhere. */
const placedSchema = z.object({
  member: z.string().describe('Id of the member.'),
  by: placedBySchema.describe(
    'Why this one: its agent or caller belongs there (`affinity`); its own had no room in time (`left`); of its tier it had the largest part of its slots free (`load`).',
  ),
  others: z
    .array(
      z.object({
        member: z.string().describe('Id of the member.'),
        cause: passedOverSchema.describe('Why it did not go there.'),
      }),
    )
    .describe('The other members.'),
});

/** Decisions that a pool may make on a call. */
export const outcomeSchema = z.enum(['granted', 'rejected', 'left', 'moved']) satisfies z.ZodType<
  Decision['decided']
>;

export const upstreamSaidSchema = z.enum([
  'served',
  'egress',
  'unauthorized',
  'quota',
  'never_fits',
  'long_window',
  'concurrency',
  'overload',
  'tokens',
  'requests',
  'ramp',
  'unknown',
  'error',
]) satisfies z.ZodType<UpstreamSignal['kind']>;

const endedSchema = z.enum([
  'success',
  'cancelled',
  'failed',
  'refused',
  'unused',
  'expired',
]) satisfies z.ZodType<NonNullable<Decision['ended']>>;

/** One decision of a pool, and what became of the call. */
export const decisionInfoSchema = z.object({
  kind: holdKind('What asked'),
  lease: z.string().describe('Id of the lease, as in the header `headgate-lease`.'),
  ticket: z.string().describe('Id of the ticket.'),
  attempt: z.int().describe('Number of the attempt of the call in this group; 1 is the first.'),
  lane: z.enum(LANES).describe('The lane.'),
  tenant: z.string().describe('The tenant that it is charged to.'),
  agent: z.string().nullable().describe('The agent run. Null: the call belongs to none.'),
  upstream: z.string().describe('The upstream that the call goes to.'),
  model: z.string().nullable().describe('The model. Null: not known.'),
  slots: z.number().meta({ description: 'Slots that it asked for.', unit: 'slots' }),
  arrived_at: z.iso.datetime().describe('When it came.'),
  decided_at: z.iso.datetime().describe('When it was decided.'),
  waited_ms: ms.meta({ description: 'How long it waited.', unit: 'ms' }),
  position_at_arrival: count.describe('Waiters ahead of it when it came.'),
  waited_for: waitCauseSchema
    .nullable()
    .describe('Why it was not granted when it came. Null: it was.'),
  scope: callScopeSchema
    .exactOptional()
    .describe(
      'The calls that this cause held. Absent if it held all calls, or the call did not wait.',
    ),
  outcome: outcomeSchema.describe('The decision.'),
  placed: placedSchema
    .exactOptional()
    .describe(
      'The member that it was granted at, and why that one. Absent: it was not granted, or the group names no members.',
    ),
  rejection: rejectionSchema
    .nullable()
    .describe('The reason of a rejection, with its figures. Null: it was not rejected.'),
  upstream_status: z
    .int()
    .nullable()
    .describe('Status of the answer of the upstream. Null: none that this group was told.'),
  upstream_said: upstreamSaidSchema
    .nullable()
    .describe('The meaning of that answer: `served`, or the kind of refusal.'),
  upstream_retry_after_ms: z
    .number()
    .nullable()
    .meta({ description: 'How long the upstream asked to be left alone.', unit: 'ms' }),
  ended: endedSchema
    .nullable()
    .describe('How its lease ended. Null: it has none, or still holds it.'),
  held_ms: ms.nullable().meta({ description: 'How long its lease was held.', unit: 'ms' }),
});

export type DecisionInfo = Frozen<z.output<typeof decisionInfoSchema>>;

/** Which decisions are asked for; what is absent bounds nothing. */
export interface DecisionFilter {
  /** Lease ids, as in the header `headgate-lease`, or tickets. */
  readonly ids?: readonly string[];
  /** Decided at this instant or later, and before that one; epoch milliseconds. */
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly decided?: DecisionInfo['outcome'];
  readonly limit?: number;
}

import * as z from 'zod';
import type { Decision, PassedOver, PlacedBy, WaitCause } from '../core/parts/decision-log.ts';
import type { Rejection } from '../core/words/outcome.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import { LANES } from '../core/words/ticket.ts';
import { holdKind, callScopeSchema, type Frozen } from './shared-shapes.ts';

/**
 * Decisions of a pool, as they are sent and shown. The words come from the core, which has no schemas. `satisfies`
 * checks each list against the type of the core. The code that builds a decision checks the opposite direction.
 */

const ms = z.number().min(0);
const count = z.int().min(0);
const retryAfterMs = z
  .number()
  .meta({ description: 'Time until a retry may succeed.', unit: 'ms from the decision' });
const retryAfterMsOrNull = retryAfterMs
  .nullable()
  .describe('Time until a retry may succeed. null if a retry will not help for a long time.');
const never = z.null().describe('null because a retry will not help for a long time.');

const stoppedScope = z
  .object({
    model: z.string().nullable().describe('Model. null means any.'),
    tier: z.string().nullable().describe('Service tier. null means any.'),
    credential: z
      .string()
      .nullable()
      .describe("Fingerprint of a caller's own provider key. null means any."),
  })
  .exactOptional()
  .describe('Calls that the upstream refuses. Absent if it refuses all.');

const rejectionSchema = z.discriminatedUnion('reason', [
  z.object({
    reason: z.literal('queue_full').describe('The queue is full.'),
    queueLengthMax: z.number().meta({ description: 'The limit that was reached.', unit: 'calls' }),
    of: z.enum(['group', 'tenant', 'agent']).describe('Owner of the limit.'),
    dropped: z
      .enum(['lane', 'share', 'returned', 'held'])
      .optional()
      .describe(
        'Why the call was dropped from the queue in favor of another one. `lane`: that call has a higher lane. `share`: its tenant has fewer queued calls relative to its weight. `returned`: it was queued before a reset. `held`: no scope holds it back, and its tenant is the same. Absent if the call was rejected on arrival.',
      ),
    retryAfterMs,
  }),
  z.object({
    reason: z.literal('queue_timeout').describe('The call waited until its deadline.'),
    waitedMs: z.number().meta({ description: 'Time that it waited.', unit: 'ms' }),
    retryAfterMs,
    scope: stoppedScope,
  }),
  z.object({
    reason: z.literal('infeasible').describe('The wait would outlast the deadline.'),
    estimateMs: z.number().meta({ description: 'Estimated wait.', unit: 'ms' }),
    isStalled: z
      .literal(true)
      .exactOptional()
      .describe(
        'No call has ended for a long time, so the estimate is a minimum. Absent if calls ended.',
      ),
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
    reason: z.literal('paused').describe('The pool was still paused at the deadline of the call.'),
    waitedMs: z.number().meta({ description: 'Time that it waited.', unit: 'ms' }),
    retryAfterMs: retryAfterMsOrNull,
    until: z
      .number()
      .nullable()
      .describe(
        'Time at which the upstream backoff ends, in epoch ms. null if an operator paused the pool.',
      ),
    scope: stoppedScope,
  }),
  z.object({
    reason: z
      .literal('upstream_limited')
      .describe(
        'The upstream refuses calls because of its own limit, until after the deadline of the call.',
      ),
    waitedMs: z.number().meta({ description: 'Time that it waited.', unit: 'ms' }),
    retryAfterMs: retryAfterMsOrNull,
    until: z.number().describe('Time at which the limit ends, in epoch ms.'),
    probeAt: z
      .number()
      .nullable()
      .describe(
        'Time at which the next call probes the limit, in epoch ms. null if there is no probe.',
      ),
    words: z
      .string()
      .nullable()
      .describe('Message of the upstream, shortened and without secrets. null if it sent none.'),
    scope: stoppedScope,
  }),
  z.object({
    reason: z.literal('breaker_open').describe('The upstream failed too often.'),
    retryAfterMs: retryAfterMsOrNull,
    scope: stoppedScope,
  }),
  z.object({
    reason: z
      .literal('members_out')
      .describe('Every member is ejected, disabled, or has refused the call.'),
    retryAfterMs: retryAfterMsOrNull,
  }),
  z.object({
    reason: z.literal('budget_exhausted').describe('The remaining budget does not cover the call.'),
    window: z.enum(['hour', 'day', 'month']).describe('Period of the budget.'),
    limitUsd: z.number().meta({ description: 'The budget.', unit: 'USD' }),
    leftUsd: z.number().meta({
      description: 'Remaining budget, with calls in flight counted as spent.',
      unit: 'USD',
    }),
    wantedUsd: z.number().meta({ description: 'Estimated cost of the call.', unit: 'USD' }),
    retryAfterMs: never,
  }),
  z.object({
    reason: z.literal('draining').describe('The group accepts no new calls.'),
    retryAfterMs,
  }),
  z.object({
    reason: z.literal('cancelled').describe('An operator removed the call from the queue.'),
    retryAfterMs: never,
  }),
  z.object({
    reason: z.literal('nested').describe('The call would wait for its own parent.'),
    retryAfterMs: never,
  }),
  z.object({
    reason: z.literal('never_fits').describe('The call exceeds a limit of the group on its own.'),
    slotsPerCallMax: z.number().meta({ description: 'Maximum slots of one call.', unit: 'slots' }),
    exceeded: z
      .object({
        limit: z
          .enum(['rpm', 'tpm', 'itpm', 'otpm', 'rpd', 'tpd', 'startsPerS'])
          .describe('Name of the limit.'),
        limitAmount: z.number().describe('The limit, in requests or tokens.'),
        amount: z.number().describe('Amount that the call needs.'),
      })
      .exactOptional()
      .describe(
        'The limit that the call exceeds on its own. Absent if it exceeds the slots of one call.',
      ),
    retryAfterMs: never,
  }),
]) satisfies z.ZodType<Rejection>;

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

const placedSchema = z.object({
  member: z.string().describe('Id of the member.'),
  by: placedBySchema.describe(
    'Why this member was chosen. `sole`: the group has no other. `affinity`: other calls of the agent or caller ran there recently. `left`: the member of the agent or caller had no room in time. `load`: it had the largest free share of slots in its tier. `dry_run`: the group is in a dry run.',
  ),
  others: z
    .array(
      z.object({
        member: z.string().describe('Id of the member.'),
        cause: passedOverSchema.describe('Why this member was not chosen.'),
      }),
    )
    .describe('The other members.'),
});

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

export const decisionInfoSchema = z.object({
  kind: holdKind('Kind of the requester'),
  lease: z.string().describe('Id of the lease, as in the header `headgate-lease`.'),
  ticket: z.string().describe('Id of the ticket.'),
  attempt: z.int().describe('Number of the attempt of the call in this group, beginning with 1.'),
  lane: z.enum(LANES).describe('Lane of the call.'),
  tenant: z.string().describe('Tenant that it is charged to.'),
  agent: z.string().nullable().describe('Agent run. null if there is none.'),
  upstream: z.string().describe('Upstream of the call.'),
  model: z.string().nullable().describe('Model. null if it is unknown.'),
  slots: z.number().meta({ description: 'Requested slots.', unit: 'slots' }),
  arrived_at: z.iso.datetime().describe('Time of arrival.'),
  decided_at: z.iso.datetime().describe('Time of the decision.'),
  waited_ms: ms.meta({ description: 'Time that it waited.', unit: 'ms' }),
  position_at_arrival: count.describe('Number of waiters ahead of it on arrival.'),
  waited_for: waitCauseSchema
    .nullable()
    .describe('Why it was not granted on arrival. null if it was.'),
  scope: callScopeSchema
    .exactOptional()
    .describe(
      'Calls to which this reason applied. Absent if it applied to all calls, or the call did not wait.',
    ),
  outcome: outcomeSchema.describe('Decision of the pool.'),
  placed: placedSchema
    .exactOptional()
    .describe(
      'Member that it was granted at, and why. Absent if it was not granted, or the group has no members.',
    ),
  rejection: rejectionSchema
    .nullable()
    .describe('Reason of the rejection, with its figures. null if it was not rejected.'),
  upstream_status: z
    .int()
    .nullable()
    .describe('Status of the response of the upstream. null if none was reported to this group.'),
  upstream_said: upstreamSaidSchema
    .nullable()
    .describe(
      'Meaning of that response: `served`, or the kind of refusal. null if none was reported.',
    ),
  upstream_retry_after_ms: z.number().nullable().meta({
    description: 'Wait that the upstream asked for. null if it asked for none.',
    unit: 'ms',
  }),
  ended: endedSchema
    .nullable()
    .describe('How its lease ended. null if it had none, or still holds it.'),
  held_ms: ms.nullable().meta({
    description: 'Time for which its lease was held. null if it had none, or still holds it.',
    unit: 'ms',
  }),
});

export type DecisionInfo = Frozen<z.output<typeof decisionInfoSchema>>;

/** Selects decisions. Absent fields do not restrict. */
export interface DecisionFilter {
  /** Lease ids, as in the header `headgate-lease`, or tickets. */
  readonly ids?: readonly string[];
  /** Decided at or after `fromMs`, and before `toMs`. Epoch milliseconds. */
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly decided?: DecisionInfo['outcome'];
  readonly limit?: number;
}

import * as z from 'zod';
import { LANES } from '../../core/words/ticket.ts';
import { WARNING_KINDS } from '../observations.ts';
import { unreachableSchema } from './status-schemas.ts';

/** What the admin API tells of the past of groups: the shapes of `observations.ts`, as answers have them. */

const at = z.iso.datetime();
const tally = z.record(z.string(), z.int().min(0));
const amount = z.number().min(0);

/** One step of a history. */
export const historyPointSchema = z.object({
  at,
  /** Of several pools an upper bound: they need not have been full at the same instant. */
  in_use_max: amount,
  in_use_mean: amount,
  /** Slots that could be granted at the end of the step; null: any number. */
  limit: amount.nullable(),
  limit_configured: amount.nullable(),
  queued_max: amount,
  /** Of the calls that were granted; null: there were none. */
  wait_p50_ms: amount.nullable(),
  wait_p95_ms: amount.nullable(),
  wait_p99_ms: amount.nullable(),
  granted: z.int().min(0),
  rejected: tally,
  refusals: tally,
  input_tokens: amount,
  output_tokens: amount,
  cost_usd: amount,
});

/** What changed at an instant: who or what made the curves bend. */
export const markerSchema = z.object({
  at,
  kind: z.enum([
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
    'reset',
  ]),
  /** A few words, as in `max_concurrency 5 → 3`. */
  label: z.string(),
  detail: z.string(),
  /** Who did it, as the audit log names them; null: nobody here, but the upstream or the platform. */
  actor: z.string().nullable(),
  /** The pool that it happened in; null: the group is not split, or it was done to all of it. */
  partition: z.string().nullable(),
});

export const historySchema = z.object({
  from: at,
  to: at,
  step_s: z.int(),
  /** The oldest first. Steps in which nothing happened are left out. */
  points: z.array(historyPointSchema),
  /** The oldest first; the last 1,000. */
  markers: z.array(markerSchema),
  unreachable: unreachableSchema,
});

/** What the group may decide of a call. */
export const OUTCOMES = ['granted', 'rejected', 'declined', 'left', 'moved'] as const;

/** One decision. What each word means stands in `docs/metrics.md`. */
export const decisionSchema = z.object({
  partition: z.string().nullable(),
  lease: z.string(),
  ticket: z.string(),
  attempt: z.int(),
  lane: z.enum(LANES),
  tenant: z.string(),
  agent: z.string().nullable(),
  upstream: z.string(),
  model: z.string().nullable(),
  slots: z.number(),
  arrived_at: at,
  decided_at: at,
  waited_ms: amount,
  position_at_arrival: z.int().min(0),
  waited_for: z
    .enum([
      'operator_pause',
      'upstream_pause',
      'breaker',
      'settling',
      'cap',
      'slots',
      'rates',
      'order',
    ])
    .nullable(),
  outcome: z.enum(OUTCOMES),
  rejection: z.looseObject({ reason: z.string() }).nullable(),
  upstream_status: z.int().nullable(),
  upstream_said: z.string().nullable(),
  upstream_retry_after_ms: z.number().nullable(),
  ended: z.string().nullable(),
  held_ms: amount.nullable(),
});

export const decisionsSchema = z.object({
  /** The latest first. */
  decisions: z.array(decisionSchema),
  unreachable: unreachableSchema,
});

/** Something that an operator had better look at. */
export const warningSchema = z.object({
  id: z.string(),
  at,
  kind: z.enum(WARNING_KINDS),
  group: z.string(),
  partition: z.string().nullable(),
  message: z.string(),
  figures: z.record(z.string(), z.number()),
});

export const warningsSchema = z.object({
  /** The latest first. */
  warnings: z.array(warningSchema),
  unreachable: unreachableSchema,
});

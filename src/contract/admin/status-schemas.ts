import * as z from 'zod';
import { LANES } from '../../core/words/ticket.ts';

/** What the admin API tells of groups at this moment: the shapes of `group-rpc.ts`, as answers have them. */

const count = z.int().min(0);
const at = z.iso.datetime();
const lane = z.enum(LANES);
const counts = z.record(z.string(), z.number());

const spendSchema = z.object({
  hour_usd: z.number(),
  day_usd: z.number(),
  month_usd: z.number(),
  reserved_usd: z.number(),
  day_usd_by_key: counts,
  day_usd_by_agent: counts,
});

const gauges = {
  limit: z.object({
    configured: z.number().nullable(),
    effective: z.number().nullable(),
    source: z.enum(['configured', 'built_in', 'unknown', 'learned']),
  }),
  in_use: count,
  cooling: count,
  queued: count,
  queued_by_lane: z.object({ high: count, normal: count, low: count }),
  oldest_wait_ms: z.number().min(0),
  wait_p50_ms: z.number().min(0).nullable(),
  wait_p95_ms: z.number().min(0).nullable(),
  paused: z.boolean(),
  paused_until: at.nullable(),
  breaker: z.enum(['closed', 'open', 'half_open']),
  breaker_until: at.nullable(),
  refusals_total: counts,
  rates: z.record(z.string(), z.object({ limit: z.number(), left: z.number() })).nullable(),
  spend: spendSchema.nullable(),
  draining: z.boolean(),
  dry_run: z.boolean(),
  granted_total: count,
  rejected_total: counts,
  would_wait_total: count,
  expired_total: count,
  resurrected_total: count,
  passed_unlimited_total: count,
  idle_ms: z.number().min(0),
};

/** One pool of a split group, or why nothing is known of it. */
const partitionStatusSchema = z.union([
  z.object({ ...gauges, partition: z.string().nullable(), retired: z.literal(true).optional() }),
  z.object({ partition: z.string().nullable(), error: z.string() }),
]);

/** A group with all its pools taken together. */
export const groupStatusSchema = z.object({
  name: z.string(),
  kind: z.enum(['configured', 'automatic', 'key', 'retired']),
  ...gauges,
  overlaps_with: z.array(z.string()),
  error: z.string().optional(),
  partitions: z.array(partitionStatusSchema),
});

/** A slot that is held. */
export const leaseSchema = z.object({
  id: z.string(),
  partition: z.string().nullable(),
  caller: z.string(),
  tenant: z.string(),
  agent: z.string().nullable(),
  lane,
  slots: count,
  upstream: z.string(),
  model: z.string().nullable(),
  granted_at: at,
  age_ms: z.number().min(0),
  expires_at: at,
  state: z.enum(['held', 'revoking', 'cooling']),
});

/** A call that waits for a slot. */
export const waiterSchema = z.object({
  ticket: z.string(),
  partition: z.string().nullable(),
  lane,
  tenant: z.string(),
  agent: z.string().nullable(),
  upstream: z.string(),
  model: z.string().nullable(),
  slots: count,
  waited_ms: z.number().min(0),
  position: count,
  estimate_ms: z.number().min(0),
  promoted: z.boolean(),
});

/** Pools that did not answer. */
export const unreachableSchema = z.array(
  z.object({ partition: z.string().nullable(), error: z.string() }),
);

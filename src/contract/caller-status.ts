import * as z from 'zod';
import { LANES } from '../core/words/ticket.ts';

/** What `GET /status` tells a caller: of its own calls, and of nobody else's. */

const count = z.int().min(0);
const amount = z.number().min(0);
const at = z.iso.datetime();

/** A limit, and what is left of it. Null: others share it, so that it would tell of them. */
const rateSchema = z.object({ limit: z.number(), left: z.number().nullable() });

const waitingSchema = z.object({
  ticket: z.string(),
  /** Calls that will probably go before it, whoever's they are. */
  position: count,
  estimate_ms: amount,
  waited_ms: amount,
  lane: z.enum(LANES),
  upstream: z.string(),
  model: z.string().nullable(),
  agent: z.string().nullable(),
  slots: count,
});

const callerGroupSchema = z.object({
  name: z.string(),
  kind: z.enum(['configured', 'automatic', 'key']),
  /** The partition of a split group; null: the group is not split, or no partition is known yet. */
  partition: z.string().nullable(),
  limits: z.object({
    /** Slots that can be granted, with what was learned; null: any number. Over all who share the group. */
    slots: amount.nullable(),
    /** The most that one tenant may hold, and one agent of it; null: no bound. */
    slots_each: amount.nullable(),
    slots_each_agent: amount.nullable(),
    /** By their names in the configuration, as `rpm`. */
    rates: z.record(z.string(), rateSchema),
    /** By `per_hour`, `per_day`, `per_month`. */
    budget_usd: z.record(z.string(), rateSchema),
  }),
  paused: z.boolean(),
  /** Until when the upstream wants no calls. */
  paused_until: at.nullable(),
  draining: z.boolean(),
  /** The caller's calls that hold slots, and how many slots. */
  in_flight: count,
  slots_in_use: count,
  /** The caller's calls that wait, the next one first. */
  waiting: z.array(waitingSchema),
});

export const callerStatusSchema = z.object({
  at,
  key: z.object({
    /** Id of the gateway key, or fingerprint of the provider key. */
    id: z.string(),
    kind: z.enum(['gateway', 'provider']),
    lane_max: z.enum(LANES),
    weight: z.number(),
    expires_at: at.nullable(),
  }),
  /** Configured groups that a gateway key may use. */
  may_use: z.array(z.string()),
  /** Groups without a call of the caller are among them only where they are its own, or not split. */
  groups: z.array(callerGroupSchema),
  /** Pools that were not asked, because a request asks 64 at the most. */
  left_out: count,
  /** Names of groups with a pool that did not answer. */
  unreachable: z.array(z.string()),
});

export type CallerStatus = z.output<typeof callerStatusSchema>;
export type CallerGroup = z.output<typeof callerGroupSchema>;

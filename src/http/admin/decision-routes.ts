import type { Hono } from 'hono';
import * as z from 'zod';
import type { Env } from '../../contract/env.ts';
import { explainIssues } from '../../contract/import-errors.ts';
import { WARNING_KINDS, type DecisionFilter } from '../../contract/observations.ts';
import { DECISIONS_MAX } from '../../core/trail.ts';
import { LANES } from '../../core/ticket.ts';
import { askPools, readDirectory, requirePools, unreachable } from './pools.ts';
import { badQuery, queryInstant } from './query.ts';

const OUTCOMES = ['granted', 'rejected', 'declined', 'left', 'moved'] as const;

/** Which decisions are wanted. `lease` takes the header `headgate-lease` as it is, or a ticket. */
const decisionQuerySchema = z.strictObject({
  lease: z.string().min(1).max(2_000).optional(),
  from: queryInstant.optional(),
  to: queryInstant.optional(),
  outcome: z.enum(OUTCOMES).optional(),
  limit: z.coerce.number().int().min(1).max(DECISIONS_MAX).default(100),
});

/** One decision. What each word means stands in `docs/metrics.md`. */
const decisionSchema = z.strictObject({
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
  arrived_at: z.iso.datetime(),
  decided_at: z.iso.datetime(),
  waited_ms: z.number(),
  position_at_arrival: z.int(),
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
  held_ms: z.number().nullable(),
});

const unreachableSchema = z.array(
  z.strictObject({ partition: z.string().nullable(), error: z.string() }),
);

export const decisionsSchema = z.strictObject({
  /** The latest first. */
  decisions: z.array(decisionSchema),
  unreachable: unreachableSchema,
});

const warningSchema = z.strictObject({
  id: z.string(),
  at: z.iso.datetime(),
  kind: z.enum(WARNING_KINDS),
  group: z.string(),
  partition: z.string().nullable(),
  message: z.string(),
  figures: z.record(z.string(), z.number()),
});

export const warningsSchema = z.strictObject({
  /** The latest first. */
  warnings: z.array(warningSchema),
  unreachable: unreachableSchema,
});

/** Why calls of a group were granted, held up or refused, and what it warned of. */
export function addDecisionRoutes(app: Hono<{ Bindings: Env }>): void {
  app.get('/groups/:name/decisions', async (context) => {
    const filter = readFilter(context.req.query());
    const directory = await readDirectory(context.env);
    const pools = requirePools(directory, context.req.param('name'));
    const asked = await askPools(context.env, directory.config, pools, (pool) =>
      pool.decisions(filter),
    );
    const decisions = asked.flatMap((one) =>
      'answer' in one ? one.answer.map((each) => ({ partition: one.pool.partition, ...each })) : [],
    );
    decisions.sort((a, b) => latestFirst(a.decided_at, b.decided_at));
    return context.json({
      decisions: decisions.slice(0, filter.limit),
      unreachable: unreachable(asked),
    });
  });

  app.get('/groups/:name/warnings', async (context) => {
    const directory = await readDirectory(context.env);
    const pools = requirePools(directory, context.req.param('name'));
    const asked = await askPools(context.env, directory.config, pools, (pool) => pool.warnings());
    const warnings = asked.flatMap((one) => ('answer' in one ? one.answer : []));
    warnings.sort((a, b) => latestFirst(a.at, b.at));
    return context.json({ warnings: warnings.slice(0, 100), unreachable: unreachable(asked) });
  });
}

function latestFirst(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? 1 : -1;
}

function readFilter(query: Readonly<Record<string, string>>): DecisionFilter {
  const parsed = decisionQuerySchema.safeParse(query);
  if (!parsed.success) throw badQuery(explainIssues(parsed.error, decisionQuerySchema, query));
  const { lease, from, to, outcome, limit } = parsed.data;
  return {
    limit,
    ...(lease === undefined ? {} : { ids: lease.split(',').map((id) => id.trim()) }),
    ...(from === undefined ? {} : { fromMs: from }),
    ...(to === undefined ? {} : { toMs: to }),
    ...(outcome === undefined ? {} : { decided: outcome }),
  };
}

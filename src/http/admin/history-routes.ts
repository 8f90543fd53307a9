import type { Hono } from 'hono';
import * as z from 'zod';
import type { Env } from '../../contract/env.ts';
import { explainIssues } from '../../contract/import-errors.ts';
import {
  joinPools,
  MINUTE_MS,
  MINUTES_KEPT_MS,
  QUARTERS_KEPT_MS,
  type HistoryPoint,
} from '../../contract/history.ts';
import type { PoolHistory } from '../../contract/observations.ts';
import { quantileMs } from '../../core/histogram.ts';
import type { AdminContext } from './change.ts';
import { askPools, readDirectory, requirePools, unreachable, type Asked } from './pools.ts';
import { ProblemError } from './problem.ts';
import { badQuery, queryInstant } from './query.ts';

/** So many points are drawn at the most. A chart of 24 hours by the minute has 1,440. */
const POINTS_MAX = 3_000;

/** The query of a history. Without one: the last hour by the minute. */
const historyQuerySchema = z.strictObject({
  from: queryInstant.optional(),
  to: queryInstant.optional(),
  /** Seconds; a multiple of 60. */
  step: z.coerce.number().int().min(60).max(2_592_000).multipleOf(60).optional(),
  /** One partition of a split group. Absent: all of them together. */
  partition: z.string().optional(),
});

const tally = z.record(z.string(), z.int());

const historyPointSchema = z.strictObject({
  at: z.iso.datetime(),
  /** Of several pools an upper bound: they need not have been full at the same instant. */
  in_use_max: z.number(),
  in_use_mean: z.number(),
  /** Slots that could be granted at the end of the step; null: any number. */
  limit: z.number().nullable(),
  limit_configured: z.number().nullable(),
  queued_max: z.number(),
  /** Of the calls that were granted; null: there were none. */
  wait_p50_ms: z.number().nullable(),
  wait_p95_ms: z.number().nullable(),
  wait_p99_ms: z.number().nullable(),
  granted: z.int(),
  rejected: tally,
  refusals: tally,
  input_tokens: z.number(),
  output_tokens: z.number(),
  cost_usd: z.number(),
});

export const historySchema = z.strictObject({
  from: z.iso.datetime(),
  to: z.iso.datetime(),
  step_s: z.int(),
  /** The oldest first. Steps in which nothing happened are left out. */
  points: z.array(historyPointSchema),
  unreachable: z.array(z.strictObject({ partition: z.string().nullable(), error: z.string() })),
});

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepMs: number;
  readonly partition: string | undefined;
}

/** What a group did, over time. */
export function addHistoryRoutes(app: Hono<{ Bindings: Env }>): void {
  app.get('/groups/:name/history', async (context) => {
    const range = readRange(context, Date.now());
    const directory = await readDirectory(context.env);
    const all = requirePools(directory, context.req.param('name'));
    const { fromMs, toMs, stepMs, partition } = range;
    const pools =
      partition === undefined ? all : all.filter((each) => each.partition === partition);
    if (pools.length === 0) throw new ProblemError(404, 'Nothing is known of this partition.');
    const asked = await askPools(context.env, directory.config, pools, (pool) =>
      pool.history(fromMs, toMs, stepMs),
    );
    const answer: z.output<typeof historySchema> = {
      from: new Date(fromMs).toISOString(),
      to: new Date(toMs).toISOString(),
      step_s: stepMs / 1_000,
      points: pointsOf(asked, range),
      unreachable: unreachable(asked),
    };
    return context.json(answer);
  });
}

function readRange({ req }: AdminContext, now: number): Range {
  const query = req.query();
  const parsed = historyQuerySchema.safeParse(query);
  if (!parsed.success) throw badQuery(explainIssues(parsed.error, historyQuerySchema, query));
  const { from, to = now, step, partition } = parsed.data;
  const fromMs = Math.max(from ?? to - 3_600_000, now - QUARTERS_KEPT_MS);
  if (fromMs >= to) {
    throw badQuery([{ path: 'from', message: 'must be before to, and within 30 days' }]);
  }
  const isRecent = now - fromMs <= MINUTES_KEPT_MS + MINUTE_MS;
  const stepMs = step === undefined ? defaultStepMs(to - fromMs, isRecent) : step * 1_000;
  if ((to - fromMs) / stepMs > POINTS_MAX) {
    const message = `makes more than ${POINTS_MAX} points: take a longer step, or a shorter time`;
    throw badQuery([{ path: 'step', message }]);
  }
  return { fromMs, toMs: to, stepMs, partition };
}

/** By the minute where minutes are kept, else by the quarter of an hour, and by the hour over a week. */
function defaultStepMs(lengthMs: number, isRecent: boolean): number {
  if (isRecent) return MINUTE_MS;
  return lengthMs > 8 * MINUTES_KEPT_MS ? 60 * MINUTE_MS : 15 * MINUTE_MS;
}

/** The points of all pools together. */
function pointsOf(
  asked: readonly Asked<PoolHistory>[],
  { stepMs }: Range,
): z.output<typeof historyPointSchema>[] {
  const steps = new Map<number, HistoryPoint>();
  let now = 0;
  for (const one of asked) {
    if ('error' in one) continue;
    now = Math.max(now, one.answer.now);
    for (const point of one.answer.points) {
      const known = steps.get(point.at);
      steps.set(point.at, known === undefined ? point : joinPools(known, point));
    }
  }
  const inOrder = [...steps.values()].toSorted((a, b) => a.at - b.at);
  return inOrder.map((point) => shown(point, Math.max(1, Math.min(stepMs, now - point.at))));
}

/** @param lengthMs how long the point has been so far */
function shown(point: HistoryPoint, lengthMs: number): z.output<typeof historyPointSchema> {
  const { waits } = point;
  return {
    at: new Date(point.at).toISOString(),
    in_use_max: point.inUseMax,
    in_use_mean: Math.round((1_000 * point.slotMs) / lengthMs) / 1_000,
    limit: point.limit,
    limit_configured: point.limitConfigured,
    queued_max: point.queuedMax,
    wait_p50_ms: quantileMs(waits, 0.5),
    wait_p95_ms: quantileMs(waits, 0.95),
    wait_p99_ms: quantileMs(waits, 0.99),
    granted: point.granted,
    rejected: { ...point.rejected },
    refusals: { ...point.refusals },
    input_tokens: point.inputTokens,
    output_tokens: point.outputTokens,
    cost_usd: point.usd,
  };
}

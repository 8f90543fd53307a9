import * as z from 'zod';
import { fromInstant, groupParams, instant, toInstant } from '../shapes.ts';
import { invalid, route } from '../route.ts';
import { ProblemError } from '../context.ts';
import { requirePools, unreachable } from '../pools.ts';
import {
  type Marker,
  auditMarkers,
  auditPathsOf,
  gapSchema,
  gapsIn,
  markerSchema,
  poolMarker,
} from '../history-events.ts';
import { steadyClock } from '../../runtime/async.ts';
import { definedGroup, kindOfLimits } from '../../routing/implied-groups.ts';
import { type PoolReply, askPools, readDirectory } from '../../overview/pools.ts';
import { joinPools } from '../../history/points.ts';
import { type Env, directoryOf } from '../../env.ts';
import { quantileMs } from '../../core/parts/totals.ts';
import { AUTO_PREFIX } from '../../contract/pool-name.ts';
import {
  type HistoryPoint,
  MINUTES_KEPT_MS,
  MINUTE_MS,
  type PoolHistory,
  QUARTERS_KEPT_MS,
  type TenantTimes,
} from '../../contract/history.ts';
import { unreachableSchema } from '../../contract/group-status.ts';

const tally = z.record(z.string(), z.int().min(0));

const amount = z.number().min(0);

const tenantTime = z.object({
  tenant: z.string().describe('Tenant, cut to 128 characters.'),
  ms: amount.meta({
    description:
      'Total time. For held slots, the sum over the slots. A lower bound if several pools or minutes are combined.',
    unit: 'ms',
  }),
});

export const historyPointSchema = z
  .object({
    at: instant.describe('Start of the step.'),
    in_use_max: amount.meta({
      description:
        'Maximum slots in use. An upper bound if there are several pools, because they need not have peaked at the same time.',
      unit: 'slots',
    }),
    in_use_mean: amount.meta({ description: 'Mean of the slots in use.', unit: 'slots' }),
    limit: amount.nullable().meta({
      description: 'Slots that could be granted at the end of the step. null means unlimited.',
      unit: 'slots',
    }),
    limit_configured: amount.nullable().meta({
      description:
        'Slots that were configured or assumed at the end of the step. null means unlimited.',
      unit: 'slots',
    }),
    queued_max: amount.meta({ description: 'Maximum length of the queue.', unit: 'calls' }),
    wait_p50_ms: amount.nullable().meta({
      description: 'Median wait of the granted calls. null if there were none.',
      unit: 'ms',
    }),
    wait_p95_ms: amount.nullable().meta({
      description: '95th percentile of those waits. null if there were none.',
      unit: 'ms',
    }),
    wait_p99_ms: amount.nullable().meta({
      description: '99th percentile of those waits. null if there were none.',
      unit: 'ms',
    }),
    granted: z.int().min(0).meta({ description: 'Number of granted calls.', unit: 'calls' }),
    rejected: tally.describe('Rejected calls, by reason.'),
    refusals: tally.describe('Refusals of the upstream, by kind.'),
    input_tokens: amount.meta({ description: 'Input tokens used.', unit: 'tokens' }),
    output_tokens: amount.meta({ description: 'Output tokens used.', unit: 'tokens' }),
    cost_usd: amount.meta({ description: 'Cost of the calls.', unit: 'USD' }),
    waited_for: tally.meta({
      description: 'Waits that ended in the step, with or without a slot, by wait reason.',
      unit: 'calls',
    }),
    waited_for_ms: z
      .record(z.string(), amount)
      .meta({ description: 'Total time of those waits.', unit: 'ms' }),
    tenants_waited: z
      .array(tenantTime)
      .describe('The three tenants with the longest of those waits.'),
    tenants_held: z.array(tenantTime).describe('The three tenants that held slots longest.'),
    granted_by_member: tally
      .exactOptional()
      .describe('Granted calls by member. Absent if the group has no members.'),
    refused_by_member: tally
      .exactOptional()
      .describe(
        'Calls that the upstream of a member refused, by member. Absent if the group has no members.',
      ),
    in_use_max_by_member: tally
      .exactOptional()
      .describe('Maximum slots in use, by member. Absent if the group has no members.'),
  })
  .describe('One step of a history.');

export const historySchema = z.object({
  from: instant.describe('Start of the period.'),
  to: instant.describe('End of the period.'),
  step_s: z.int().meta({ description: 'Length of a step.', unit: 's' }),
  since: instant
    .nullable()
    .describe(
      'Start of the data within the period. Sums cover the time after it. null if there is no data.',
    ),
  points: z
    .array(historyPointSchema)
    .describe('Points, the oldest first. Steps without activity are omitted.'),
  gaps: z
    .array(gapSchema)
    .describe(
      'Times without data, the oldest first. Missing points there may not be zero. A point within a gap describes the time after the restart.',
    ),
  markers: z.array(markerSchema).describe('The last 1,000 changes, the oldest first.'),
  unreachable: unreachableSchema,
});

export const historyQuery = z.strictObject({
  from: fromInstant,
  to: toInstant,
  step: z.coerce.number().int().min(60).max(2_592_000).multipleOf(60).optional().meta({
    description: 'Length of a step, a multiple of 60. Defaults to a value that suits the period.',
    unit: 's',
  }),
  partition: z
    .string()
    .max(1_000)
    .optional()
    .describe('One partition of a split group. Absent means all partitions together.'),
});

/** Maximum points of a response. A chart of 24 hours by the minute has 1,440. */
const POINTS_MAX = 3_000;

/** Maximum number of markers in a response. The latest ones are kept. */
const MARKERS_MAX = 1_000;

const TENANTS_SHOWN_MAX = 3;

type HistoryQuery = z.output<typeof historyQuery>;

type ShownPoint = z.output<typeof historyPointSchema>;

interface RequestedRange {
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepMs: number;
  readonly partition: string | undefined;
}

export const HISTORY_ROUTES = {
  getHistory: route('GET /groups/{name}/history', {
    tag: 'status',
    summary: 'Get the history of a group, up to 30 days',
    description:
      'Without a query, returns the last hour by the minute. Points of a minute are kept for a day, and points of 15 minutes for 30 days.',
    role: 'viewer',
    params: groupParams,
    query: historyQuery,
    answers: { 200: historySchema },
    problems: [404],
  }).servedBy(async ({ context, params: { name }, query }) => {
    // The clock of the pools. If the wall clock was set back, it would exclude their latest points.
    const range = rangeOf(query, steadyClock.now());
    const { fromMs, toMs, stepMs, partition } = range;
    const directory = await readDirectory(context.env);
    const all = requirePools(directory, name);
    const pools =
      partition === undefined ? all : all.filter((each) => each.partition === partition);
    if (partition !== undefined && pools.length === 0) {
      throw new ProblemError(404, 'No such partition is known.');
    }
    const [asked, done] = await Promise.all([
      askPools(context.env, directory.config, pools, (pool) =>
        // Without `to`, the end is open, because the clock of a pool may be ahead.
        pool.history(fromMs, query.to ?? Infinity, stepMs),
      ),
      doneTo(context.env, name, fromMs, query.to),
    ]);
    const { config } = directory;
    const existence = {
      // The limits of a key or team may be newer than the key or team.
      isByCalls: name.startsWith(AUTO_PREFIX) || kindOfLimits(name) !== null,
      isConfigured: definedGroup(config, name) !== undefined,
    };
    const body = {
      from: new Date(fromMs).toISOString(),
      to: new Date(toMs).toISOString(),
      step_s: stepMs / 1_000,
      points: pointsOf(asked, range),
      ...gapsIn(range, asked, done, existence),
      markers: inOrder([...done, ...markersOf(asked)]),
      unreachable: unreachable(asked),
    };
    return { status: 200, body };
  }),
};

function rangeOf(query: HistoryQuery, now: number): RequestedRange {
  const { from, to = now, step, partition } = query;
  const fromMs = Math.max(from ?? to - 3_600_000, now - QUARTERS_KEPT_MS);
  if (fromMs >= to) {
    throw invalid([{ path: 'from', message: 'must be before `to`, and within the last 30 days' }]);
  }
  const isRecent = now - fromMs <= MINUTES_KEPT_MS + MINUTE_MS;
  const stepMs = step === undefined ? defaultStepMs(to - fromMs, isRecent) : step * 1_000;
  if ((to - fromMs) / stepMs > POINTS_MAX) {
    const message = `results in more than ${POINTS_MAX} points. Use a longer step or a shorter period`;
    throw invalid([{ path: 'step', message }]);
  }
  return { fromMs, toMs: to, stepMs, partition };
}

/** Chooses a step: minutes while they are stored, otherwise quarters of an hour, and hours for more than a week. */
function defaultStepMs(lengthMs: number, isRecent: boolean): number {
  if (isRecent) return MINUTE_MS;
  return lengthMs > 8 * MINUTES_KEPT_MS ? 60 * MINUTE_MS : 15 * MINUTE_MS;
}

/** Returns the markers of operators' actions on the group in the period. */
async function doneTo(
  env: Env,
  name: string,
  fromMs: number,
  toMs: number | undefined,
): Promise<Marker[]> {
  const since = new Date(fromMs).toISOString();
  const until = toMs === undefined ? {} : { until: new Date(toMs).toISOString() };
  const reported = new Set<number>();
  const markers: Marker[] = [];
  for (const path of auditPathsOf(name)) {
    const query = { limit: MARKERS_MAX, path, since, ...until };
    const { entries } = await directoryOf(env).auditPage(query);
    // A change that moves the switches of an automatic group into an entry is found under both paths.
    const news = entries.filter(({ sequence }) => !reported.has(sequence));
    for (const { sequence } of news) reported.add(sequence);
    markers.push(...news.flatMap((entry) => auditMarkers(entry, path)));
  }
  return markers;
}

function markersOf(asked: readonly PoolReply<PoolHistory>[]): Marker[] {
  return asked.flatMap((one) => {
    if ('error' in one) return [];
    return one.answer.markers.map((marker) => poolMarker(marker, one.pool.partition));
  });
}

function inOrder(markers: readonly Marker[]): Marker[] {
  return markers.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at)).slice(-MARKERS_MAX);
}

function pointsOf(
  asked: readonly PoolReply<PoolHistory>[],
  { stepMs }: RequestedRange,
): ShownPoint[] {
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
  const sorted = [...steps.values()].toSorted((a, b) => a.at - b.at);
  return sorted.map((point) => shown(point, Math.max(1, Math.min(stepMs, now - point.at))));
}

/** @param lengthMs current length of the point */
function shown(point: HistoryPoint, lengthMs: number): ShownPoint {
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
    waited_for: { ...point.waitedFor },
    waited_for_ms: { ...point.waitedForMs },
    tenants_waited: shownTenants(point.tenantsWaited),
    tenants_held: shownTenants(point.tenantsHeld),
    ...(point.grantedByMember === undefined
      ? {}
      : {
          granted_by_member: { ...point.grantedByMember },
          refused_by_member: { ...point.refusedByMember },
          in_use_max_by_member: { ...point.inUseMaxByMember },
        }),
  };
}

function shownTenants(times: TenantTimes): { tenant: string; ms: number }[] {
  return times.slice(0, TENANTS_SHOWN_MAX).map(([tenant, ms]) => ({ tenant, ms }));
}

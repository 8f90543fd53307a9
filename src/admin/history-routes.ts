import type * as z from 'zod';
import type { historyPointSchema } from '../contract/admin/observation-schemas.ts';
import type { CheckedPart } from '../contract/admin/route.ts';
import type { AdminRoutes } from '../contract/admin/routes.ts';
import { directoryOf, type Env } from '../env.ts';
import {
  MINUTE_MS,
  MINUTES_KEPT_MS,
  QUARTERS_KEPT_MS,
  type HistoryPoint,
  type TenantTimes,
} from '../contract/history.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import { definedGroup, kindOfLimits } from '../routing/key-groups.ts';
import { joinPools } from '../history/points.ts';
import type { PoolHistory } from '../contract/history.ts';
import { steadyClock } from '../runtime/clock.ts';
import { quantileMs } from '../core/parts/histogram.ts';
import { askPools, readDirectory, type PoolReply } from '../overview/pools.ts';
import type { AdminApp } from './context.ts';
import { gapsIn } from './history-gaps.ts';
import { auditMarkers, auditPathsOf, poolMarker, type Marker } from './history-markers.ts';
import { requirePools, unreachable } from './pools.ts';
import { ProblemError } from './problem.ts';
import { invalid, serve } from './serve.ts';

/** Maximum points of a response. A chart of 24 hours by the minute has 1,440. */
const POINTS_MAX = 3_000;

/** Maximum number of markers in a response. The latest ones are kept. */
const MARKERS_MAX = 1_000;

const TENANTS_SHOWN_MAX = 3;

type HistoryQuery = CheckedPart<AdminRoutes['getHistory'], 'query'>;
type ShownPoint = z.output<typeof historyPointSchema>;

interface RequestedRange {
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepMs: number;
  readonly partition: string | undefined;
}

export function addHistoryRoutes(app: AdminApp): void {
  serve(app, 'getHistory', async ({ context, params: { name }, query }) => {
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
  });
}

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

import type { CallerGroup, CallerStatus } from '../../contract/caller-status.ts';
import type { GroupConfig } from '../../contract/config/config.ts';
import { directoryOf, type Env } from '../../env.ts';
import type { CallerCalls } from '../../contract/rpc/group-rpc.ts';
import { REFUSALS_KEPT_MS } from '../../contract/refusals.ts';
import { summedRefusals } from '../../core/parts/refusal-rows.ts';
import { poolKey } from '../../routing/pool.ts';
import { within } from '../../runtime/async.ts';
import type { ScopeFields } from '../../contract/scope.ts';
import type { PoolStatus } from '../../contract/status.ts';
import { ambiguous } from '../../core/words/signal.ts';
import { askPools } from '../../overview/pools.ts';
import { groupOfPool } from '../../overview/all-groups.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import { callerPools, type CallerPool, type StatusCaller } from './caller-pools.ts';

/** Maximum number of pools that one request queries, because callers may poll as often as they like. */
const ASKED_MAX = 64;

/** Maximum rows of rejected calls, and maximum time to wait for them. */
const REFUSALS_MAX = 50;
const REFUSALS_MS_MAX = 1_000;

type CallerLimits = CallerGroup['limits'];

/**
 * Collects what a caller may see of its calls. A key with its own automatic pool had a success. For any other key,
 * `maySeeAll` decides whether all pools that may hold its calls are queried, or only its own.
 */
export async function callerStatus(
  env: Env,
  table: RoutingTable,
  caller: StatusCaller,
  maySeeAll: () => boolean,
): Promise<CallerStatus> {
  const { config } = table.snapshot;
  const { pools: candidates, mayUse } = await callerPools(env, table, caller);
  const hadSuccess = candidates.some(({ kind, isOwn }) => kind === 'automatic' && isOwn);
  const asking =
    hadSuccess || maySeeAll() ? candidates : candidates.filter(({ isShown }) => isShown);
  const chosen = new Map(asking.slice(0, ASKED_MAX).map((each) => [poolKey(each.pool), each]));
  const pools = [...chosen.values()].map(({ pool }) => pool);
  const asked = await askPools(env, config, pools, (pool) => pool.callsOf(caller.id));
  const groups: CallerGroup[] = [];
  const unreachable = new Set<string>();
  for (const one of asked) {
    const place = chosen.get(poolKey(one.pool));
    if (place === undefined) continue;
    if ('error' in one) unreachable.add(one.pool.group);
    else if (place.isShown || hasCalls(one.answer)) {
      groups.push(groupOf(place, one.answer, caller.fingerprint));
    }
  }
  return {
    at: new Date().toISOString(),
    key: keyOf(caller),
    may_use: [...mayUse],
    groups,
    refusals: await refusalsOf(env, caller),
    left_out: candidates.length - chosen.size,
    unreachable: [...unreachable],
  };
}

/**
 * Returns Headgate's rejections of a caller. If the directory does not respond, the rest of the status is still
 * returned.
 */
async function refusalsOf(env: Env, { id }: StatusCaller): Promise<CallerStatus['refusals']> {
  const since = Date.now() - REFUSALS_KEPT_MS;
  const listed = await within(REFUSALS_MS_MAX, directoryOf(env).refusals(since, id)).catch(
    () => [],
  );
  return summedRefusals(listed)
    .slice(0, REFUSALS_MAX)
    .map(({ reason, group, upstream, model, count, first_at, last_at, message, request_ids }) => ({
      reason,
      group,
      upstream,
      model,
      count,
      first_at,
      last_at,
      message,
      request_ids: [...request_ids],
    }));
}

function hasCalls({ in_flight, waiters }: CallerCalls): boolean {
  return in_flight + waiters.length > 0;
}

function keyOf({ id, key }: StatusCaller): CallerStatus['key'] {
  return {
    id,
    kind: key === null ? 'provider' : 'gateway',
    lane_max: key?.lane_max ?? 'normal',
    weight: key?.weight ?? 1,
    expires_at: key?.expires_at ?? null,
  };
}

function groupOf(
  { pool, kind, group, isOwn }: CallerPool,
  calls: CallerCalls,
  fingerprint: string | null,
): CallerGroup {
  const { in_flight, slots_in_use, waiters } = calls;
  const status = withoutOtherKeys(calls.status, fingerprint);
  const scopes = status.scopes?.filter(({ paused_until: until }) => until !== null) ?? [];
  return {
    name: pool.group,
    kind,
    partition: pool.partition,
    limits: limitsOf(group, status, isOwn),
    paused: status.paused,
    paused_until: status.paused_until,
    ...messageOf(status),
    ...(status.about !== undefined && { about: status.about }),
    ...(scopes.length > 0 && {
      scopes: scopes.map((scope) => ({
        about: scope.about,
        paused_until: scope.paused_until,
        ...messageOf(scope),
      })),
    }),
    draining: status.draining,
    in_flight,
    slots_in_use,
    // The fields are copied one by one, because pools may report more about a waiter to operators in the future.
    waiting: waiters.map((waiter) => ({
      ticket: waiter.ticket,
      position: waiter.position,
      estimate_ms: waiter.estimate_ms,
      waits_for: waiter.waits_for,
      ...(waiter.needs !== undefined && { needs: waiter.needs.map(groupOfPool) }),
      waited_ms: waiter.waited_ms,
      lane: waiter.lane,
      upstream: waiter.upstream,
      model: waiter.model,
      agent: waiter.agent,
      slots: waiter.slots,
    })),
  };
}

/** Omits what the upstream reported about keys of other callers, which does not affect this one. */
function withoutOtherKeys(status: PoolStatus, fingerprint: string | null): PoolStatus {
  const isShown = ({ credential }: ScopeFields): boolean =>
    credential === null ||
    (fingerprint !== null && [fingerprint, ambiguous(fingerprint)].includes(credential));
  const { about, pause, scopes = [], ...rest } = status;
  const own = { ...rest, scopes: scopes.filter((scope) => isShown(scope.about)) };
  if (about === undefined || isShown(about)) {
    return { ...own, ...(about && { about }), ...(pause && { pause }) };
  }
  const { limit } = status;
  const isLearned = limit.source === 'learned';
  return {
    ...own,
    paused_until: null,
    limit: isLearned ? { ...limit, effective: limit.configured } : limit,
  };
}

function messageOf({ pause }: Pick<PoolStatus, 'pause'>): { readonly pause_message?: string } {
  return typeof pause?.message === 'string' ? { pause_message: pause.message } : {};
}

function limitsOf(group: GroupConfig | null, status: PoolStatus, isOwn: boolean): CallerLimits {
  const { configured, effective, source } = status.limit;
  // A pool without any call has no limit yet, and reports a 0 that is not configured.
  const isUnheard = source === 'configured' && configured === null && effective === 0;
  const rates = Object.entries(status.rates ?? {}).map(([name, { limit, left }]) => [
    name,
    { limit, left: isOwn ? left : null },
  ]);
  return {
    slots: isUnheard ? (group?.limits.max_concurrency ?? null) : effective,
    slots_each: group?.fairness.max_concurrency_each ?? null,
    slots_each_agent: group?.fairness.max_concurrency_each_agent ?? null,
    rates: Object.fromEntries(rates),
    budget_usd: group === null ? {} : budgetsOf(group, status, isOwn),
  };
}

const WINDOWS = [
  ['per_hour', 'hour_usd'],
  ['per_day', 'day_usd'],
  ['per_month', 'month_usd'],
] as const;

function budgetsOf(
  { limits: { budget_usd: budget } }: GroupConfig,
  { spend }: PoolStatus,
  isOwn: boolean,
): CallerLimits['budget_usd'] {
  const entries = WINDOWS.flatMap(([name, spent]) => {
    const limit = budget[name];
    if (limit === null) return [];
    const used = (spend?.[spent] ?? 0) + (spend?.reserved_usd ?? 0);
    return [[name, { limit, left: isOwn ? Math.max(0, limit - used) : null }]];
  });
  return Object.fromEntries(entries);
}

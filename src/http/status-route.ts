import type { Context } from 'hono';
import { directoryOf, type Env } from '../env.ts';
import { ProblemError, problemResponse } from '../admin/context.ts';
import type { CallerStatus, CallerGroup } from '../contract/caller-api.ts';
import { REFUSALS_KEPT_MS, type ErrorReply } from '../contract/reasons.ts';
import { EachSecond, steadyClock, within } from '../runtime/async.ts';
import {
  delayNewKey,
  delayUnknownKey,
  isFamiliar,
  namesAnywhere,
  takePlace,
} from '../call/identity/new-keys.ts';
import { identify } from '../call/identity/authenticate.ts';
import { isolateConfig } from '../config/isolate-config.ts';
import type { RoutingTable } from '../config/snapshots.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import type { CallerCalls } from '../contract/rpc/group-rpc.ts';
import { summedRefusals } from '../core/parts/refusal-rows.ts';
import { poolKey } from '../routing/pool.ts';
import type { ScopeFields } from '../contract/shared-shapes.ts';
import type { PoolStatus } from '../contract/status.ts';
import { ambiguous } from '../core/words/signal.ts';
import { askPools } from '../overview/pools.ts';
import { groupOfPool } from '../overview/all-groups.ts';
import { callerPools, type StatusCaller, type CallerPool } from './caller-pools.ts';

/** Maximum keys without a success per second for which all pools are queried. Callers rarely have such keys. */
const STRANGERS_A_SECOND = 2;

const strangers = new EachSecond(STRANGERS_A_SECOND);

type StatusContext = Context<{ Bindings: Env }>;

/** Handles `GET /status`: a caller's own calls and limits. */
export async function status(context: StatusContext): Promise<Response> {
  try {
    const table = await requireTable(context);
    const caller = await callerOf(table, context);
    const body = await statusFor(table, caller, context);
    return Response.json(body, { headers: { 'cache-control': 'no-store' } });
  } catch (error) {
    return problemResponse(error);
  }
}

async function requireTable({ env, executionCtx }: StatusContext): Promise<RoutingTable> {
  const table = await isolateConfig.confirmed(env, executionCtx);
  if (table === null) {
    throw new ProblemError(503, 'The directory is unreachable at the moment. Retry later.');
  }
  return table;
}

/**
 * Returns the status of a caller. A provider key without a success or a running call may be made up, so it is delayed
 * and rejected like its calls. Above a number of such keys per second, only the key's own pools are queried.
 */
async function statusFor(
  table: RoutingTable,
  caller: StatusCaller,
  { env, req }: StatusContext,
): Promise<CallerStatus> {
  const { key, fingerprint } = caller;
  const names = ['v1', ...table.upstreams.keys()].map((id) => `${id} ${fingerprint}`);
  if (key !== null || isFamiliar([...names, ...namesAnywhere(caller)])) {
    return callerStatus(env, table, caller, () => true);
  }
  const name = `status ${fingerprint}`;
  const asked = { request: req.raw, env };
  const place = takePlace(asked, name);
  if (place.kind === 'rejected') throw tooManyKeys(place.reply);
  try {
    await delayNewKey(asked, name, []);
    const maySeeAll = (): boolean => strangers.mayOneMore(steadyClock.now());
    return await callerStatus(env, table, caller, maySeeAll);
  } finally {
    place.leave();
  }
}

function tooManyKeys({ message, retryAfterMs = 1_000 }: ErrorReply): ProblemError {
  const headers = { 'retry-after': String(Math.ceil(retryAfterMs / 1_000)) };
  return new ProblemError(429, message, { headers });
}

/**
 * Identifies the caller by the same rules as for calls, except that a key in the query is not accepted, because
 * addresses end up in logs and histories.
 */
async function callerOf(table: RoutingTable, { env, req }: StatusContext): Promise<StatusCaller> {
  const request = req.raw;
  const identified = await identify(table, request.headers, new URLSearchParams());
  if (identified.kind === 'rejected') {
    const { reason, message } = identified.reply;
    if (reason === 'key_invalid') await delayUnknownKey({ request, env });
    throw notKnown(message);
  }
  const { caller } = identified;
  const key = table.snapshot.config.keys.find(({ id }) => id === caller.gatewayKeyId) ?? null;
  if (key === null && caller.fingerprint === null) {
    throw notKnown('No key was sent. Send the provider key in the same way as with your calls.');
  }
  return { id: caller.id, key, fingerprint: caller.fingerprint };
}

function notKnown(detail: string): ProblemError {
  const headers = { 'www-authenticate': 'Bearer realm="headgate-status"' };
  return new ProblemError(401, detail, { headers });
}

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
async function callerStatus(
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
  const poolStatus = withoutOtherKeys(calls.status, fingerprint);
  const scopes = poolStatus.scopes?.filter(({ paused_until: until }) => until !== null) ?? [];
  return {
    name: pool.group,
    kind,
    partition: pool.partition,
    limits: limitsOf(group, poolStatus, isOwn),
    paused: poolStatus.paused,
    paused_until: poolStatus.paused_until,
    ...messageOf(poolStatus),
    ...(poolStatus.about !== undefined && { about: poolStatus.about }),
    ...(scopes.length > 0 && {
      scopes: scopes.map((scope) => ({
        about: scope.about,
        paused_until: scope.paused_until,
        ...messageOf(scope),
      })),
    }),
    draining: poolStatus.draining,
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
function withoutOtherKeys(poolStatus: PoolStatus, fingerprint: string | null): PoolStatus {
  const isShown = ({ credential }: ScopeFields): boolean =>
    credential === null ||
    (fingerprint !== null && [fingerprint, ambiguous(fingerprint)].includes(credential));
  const { about, pause, scopes = [], ...rest } = poolStatus;
  const own = { ...rest, scopes: scopes.filter((scope) => isShown(scope.about)) };
  if (about === undefined || isShown(about)) {
    return { ...own, ...(about && { about }), ...(pause && { pause }) };
  }
  const { limit } = poolStatus;
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

function limitsOf(group: GroupConfig | null, poolStatus: PoolStatus, isOwn: boolean): CallerLimits {
  const { configured, effective, source } = poolStatus.limit;
  // A pool without any call has no limit yet, and reports a 0 that is not configured.
  const isUnheard = source === 'configured' && configured === null && effective === 0;
  const rates = Object.entries(poolStatus.rates ?? {}).map(([name, { limit, left }]) => [
    name,
    { limit, left: isOwn ? left : null },
  ]);
  return {
    slots: isUnheard ? (group?.limits.max_concurrency ?? null) : effective,
    slots_each: group?.fairness.max_concurrency_each ?? null,
    slots_each_agent: group?.fairness.max_concurrency_each_agent ?? null,
    rates: Object.fromEntries(rates),
    budget_usd: group === null ? {} : budgetsOf(group, poolStatus, isOwn),
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

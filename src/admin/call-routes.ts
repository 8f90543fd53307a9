import type * as z from 'zod';
import type { callSchema } from '../contract/admin/observation-schemas.ts';
import type { CheckedPart } from '../contract/admin/route.ts';
import type { AdminRoutes } from '../contract/admin/routes.ts';
import type { CallQuery, CallsFound, StoredCall } from '../contract/calls.ts';
import { LOG_DAYS } from '../contract/config/call-log.ts';
import { attemptOf } from '../core/stats.ts';
import { leaseId } from '../core/words/ids.ts';
import {
  askPools,
  readDirectory,
  ASKED_MAX,
  usedSince,
  type Directory,
  type PoolReply,
} from '../overview/pools.ts';
import { steadyClock } from '../runtime/clock.ts';
import type { AdminApp } from './context.ts';
import { requirePools } from './pools.ts';
import { invalid, serve } from './serve.ts';

type CallsQuery = CheckedPart<AdminRoutes['findCalls'], 'query'>;
type ShownCall = z.output<typeof callSchema>;
type CallsReply = PoolReply<CallsFound>;

/** Maximum number of pools per search. The request also makes other calls. */
const SEARCHED_MAX = ASKED_MAX - 50;

/** Time for which a search may query further pools. The others are omitted. */
const SEARCH_MS_MAX = 10_000;

const NAMES_MAX = 20;

const LATE = 'not queried: the search took too long';

export function addCallRoutes(app: AdminApp): void {
  serve(app, 'findCalls', async ({ context, query }) => {
    const { env } = context;
    const now = steadyClock.now();
    const filter = filterOf(query, now);
    const directory = await readDirectory(env);
    const used = await usedSince(env, directory, filter.fromMs, query.group);
    if (query.group !== undefined && used.length === 0) requireGroup(directory, query.group);
    const pools = used.slice(0, SEARCHED_MAX);
    const beganAt = steadyClock.now();
    const asked = await askPools(env, directory.config, pools, (pool) => {
      if (steadyClock.now() - beganAt > SEARCH_MS_MAX) throw new Error(LATE);
      return pool.calls(filter);
    });
    const late = asked.filter((one) => 'error' in one && one.error === LATE).length;
    const answer = pageOf(asked, filter);
    const body = {
      ...answer,
      from: instant(filter.fromMs),
      to: instant(Number.isFinite(filter.toMs) ? filter.toMs : now),
      pools: { asked: pools.length - late, left_out: used.length - pools.length + late },
      unreachable: asked.flatMap((one) =>
        'error' in one && one.error !== LATE
          ? [{ group: one.pool.group, partition: one.pool.partition, error: one.error }]
          : [],
      ),
    };
    return { status: 200, body };
  });
}

/** Throws unless the group exists, even if it never had a call. */
function requireGroup(directory: Directory, name: string): void {
  try {
    requirePools(directory, name);
  } catch {
    throw invalid([{ path: 'group', message: 'no such group is known' }]);
  }
}

function filterOf(query: CallsQuery, now: number): CallQuery {
  const { q, lease, agent, tenant, key, model, request_id: requestId, outcome } = query;
  const { to = now + 1, from = to - LOG_DAYS * 86_400_000, limit } = query;
  if (from >= to) throw invalid([{ path: 'from', message: 'must be before to' }]);
  return {
    fromMs: from,
    // Without `to`, the end is open, because the clock of a pool may be ahead.
    toMs: Math.min(query.to ?? Infinity, query.cursor ?? Infinity),
    limit,
    ...(q !== undefined && { anyOf: namesIn(q) }),
    ...(lease !== undefined && { leases: namesIn(lease) }),
    ...(agent !== undefined && { agent }),
    ...(tenant !== undefined && { tenant }),
    ...(key !== undefined && { key }),
    ...(model !== undefined && { model }),
    ...(requestId !== undefined && { requestId }),
    ...(outcome !== undefined && { outcome }),
  };
}

/** Parses names as in a header. A tenant may itself contain a comma. */
function namesIn(text: string): string[] {
  const parts = text.split(',').map((part) => part.trim());
  return [...new Set([text, ...parts])].filter((part) => part !== '').slice(0, NAMES_MAX);
}

/**
 * Merges the results of pools. It ends at the earliest time that every pool has searched, or after `limit` calls, but
 * includes all calls with the same time as the last one.
 */
function pageOf(
  asked: readonly CallsReply[],
  { fromMs, limit }: CallQuery,
): {
  readonly calls: ShownCall[];
  readonly searched_to: string;
  readonly next_cursor: string | null;
} {
  const doneTo = Math.max(
    fromMs,
    ...asked.map((one) => ('answer' in one ? one.answer.doneTo : fromMs)),
  );
  const found = asked
    .flatMap((one) =>
      'answer' in one ? one.answer.calls.map((call) => ({ call, pool: one.pool })) : [],
    )
    .filter(({ call }) => call.at >= doneTo)
    .toSorted((a, b) => b.call.at - a.call.at);
  const lastAt = found[limit - 1]?.call.at ?? doneTo;
  const calls = found.filter(({ call }) => call.at >= lastAt);
  const isAll = lastAt <= fromMs || (calls.length === found.length && doneTo <= fromMs);
  return {
    calls: calls.map(({ call, pool }) => shown(call, pool.group, pool.partition)),
    searched_to: instant(lastAt),
    next_cursor: isAll ? null : String(lastAt),
  };
}

function shown(call: StoredCall, group: string, partition: string | null): ShownCall {
  return {
    at: instant(call.at),
    group,
    partition,
    lease: call.lease,
    tenant: call.tenant,
    agent: call.agent ?? null,
    key: call.key,
    upstream: call.upstream,
    member: call.member ?? null,
    model: call.model ?? null,
    lane: call.lane ?? 'normal',
    slots: call.slots ?? 1,
    attempt: attemptOf(leaseId(call.lease)),
    waited_ms: call.waited_ms ?? null,
    waited_for: call.waited_for ?? null,
    scope: call.scope ?? null,
    held_ms: call.held_ms ?? null,
    outcome: call.outcome,
    rejection: call.rejection ?? null,
    upstream_status: call.upstream_status ?? null,
    upstream_said: call.upstream_said ?? null,
    upstream_request_id: call.upstream_request_id ?? null,
    sent: call.sent ?? null,
    input_tokens: call.input_tokens ?? null,
    output_tokens: call.output_tokens ?? null,
    cost_usd: call.cost_usd ?? null,
    kept_for: call.kept_for,
    ...(call.kind !== undefined && { kind: call.kind }),
  };
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}

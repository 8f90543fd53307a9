import * as z from 'zod';
import { instant, partitionName, queryInstant, toInstant } from '../shapes.ts';
import { invalid, route } from '../route.ts';
import { requirePools, unreachableAnywhere } from '../pools.ts';
import { steadyClock } from '../../runtime/async.ts';
import {
  ASKED_MAX,
  usedSince,
  type Directory,
  type PoolReply,
  askPools,
  readDirectory,
} from '../../overview/pools.ts';
import { leaseId } from '../../core/words/ids.ts';
import { attemptOf } from '../../core/stats.ts';
import { LOG_DAYS } from '../../contract/config/group.ts';
import {
  type CallQuery,
  type CallsFound,
  type StoredCall,
  callLineSchema,
  callOutcomeSchema,
} from '../../contract/calls.ts';
import { unreachableSchema } from '../../contract/group-status.ts';

export const callSchema = callLineSchema
  .extend({
    group: z.string().describe('Group of this entry.'),
    partition: partitionName.describe('Partition. null if the group is not split.'),
  })
  .describe('A logged call in one of its groups. A call of several groups has an entry in each.');

export const callsSchema = z.object({
  calls: z.array(callSchema).describe('Calls, the latest first.'),
  from: instant.describe('Start of the searched period.'),
  to: instant.describe('End of the searched period.'),
  searched_to: instant.describe(
    'The response is complete for calls that ended at or after this time.',
  ),
  next_cursor: z
    .string()
    .nullable()
    .describe(
      'Send it as `cursor`. There may be more calls, even if this response has none. null if the search is complete.',
    ),
  pools: z
    .object({
      asked: z.int().min(0).describe('Number of queried pools.'),
      left_out: z
        .int()
        .min(0)
        .describe(
          'Number of pools that were not queried, because there are too many or it took too long. To query them, set `group`.',
        ),
    })
    .describe('Extent of the search.'),
  unreachable: z
    .array(unreachableSchema.element.extend({ group: z.string().describe('Name of the group.') }))
    .describe('Pools that did not respond. Their calls are missing.'),
});

/** A value by which calls are found. */
const searched = z.string().trim().min(1).max(500).optional();

const CALLS = `Each call that was slow, refused, retried or expensive is logged in each of its groups, and so is a sample of the
others. \`log\` of the group defines which calls, and for how long. Pools that were not used since \`from\` are not queried.
Calls that are in flight or have just ended are found by their lease, agent or other values. Prompts and responses are never stored.`;

export const callsQuery = z.strictObject({
  q: searched.describe(
    'A lease or ticket, an agent run, a tenant, a key, a model, or the upstream’s id of the request. Accepts the value of the header `headgate-lease`.',
  ),
  lease: searched.describe('Value of the header `headgate-lease`, or a ticket.'),
  agent: searched.describe('Agent run.'),
  tenant: searched.describe('Tenant.'),
  key: searched.describe('Id of a gateway key, or fingerprint of a provider key.'),
  model: searched.describe('Model, as the call named it.'),
  request_id: searched.describe("The upstream's id of the request."),
  group: z.string().min(1).max(300).optional().describe('Return only calls in this group.'),
  outcome: callOutcomeSchema.optional().describe('Return only calls with this outcome.'),
  from: queryInstant
    .optional()
    .describe(
      'Start of the period: RFC 3339, or epoch milliseconds. Defaults to 7 days before its end.',
    ),
  to: toInstant,
  cursor: z
    .string()
    .regex(/^\d{1,15}$/, 'expected the `next_cursor` of a response')
    .transform(Number)
    .optional()
    .describe('The `next_cursor` of the previous response, with all other parameters unchanged.'),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(500)
    .default(100)
    .describe(
      'Approximate number of calls to return. Calls of the same millisecond are returned together.',
    ),
});

type CallsQuery = z.output<typeof callsQuery>;

type ShownCall = z.output<typeof callSchema>;

type CallsReply = PoolReply<CallsFound>;

/** Maximum number of pools per search. The request also makes other calls. */
const SEARCHED_MAX = ASKED_MAX - 50;

/** Time for which a search may query further pools. The others are omitted. */
const SEARCH_MS_MAX = 10_000;

const NAMES_MAX = 20;

const LATE = 'not queried: the search took too long';

export const CALL_ROUTES = {
  findCalls: route('GET /calls', {
    tag: 'status',
    summary: 'Find logged calls of all groups, the latest first',
    description: CALLS.replaceAll('\n', ' '),
    role: 'viewer',
    query: callsQuery,
    answers: { 200: callsSchema },
  }).servedBy(async ({ context, query }) => {
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
    const answered = asked.filter((one) => !('error' in one && one.error === LATE));
    const late = asked.length - answered.length;
    const answer = pageOf(asked, filter);
    const body = {
      ...answer,
      from: timeOf(filter.fromMs),
      to: timeOf(Number.isFinite(filter.toMs) ? filter.toMs : now),
      pools: { asked: pools.length - late, left_out: used.length - pools.length + late },
      unreachable: unreachableAnywhere(answered),
    };
    return { status: 200, body };
  }),
};

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
    searched_to: timeOf(lastAt),
    next_cursor: isAll ? null : String(lastAt),
  };
}

function shown(call: StoredCall, group: string, partition: string | null): ShownCall {
  return {
    at: timeOf(call.at),
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

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

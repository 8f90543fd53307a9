import * as z from 'zod';
import { changedSchema } from '../shapes.ts';
import { invalid, route } from '../route.ts';
import type { AdminContext } from '../context.ts';
import { unreachableAnywhere } from '../pools.ts';
import { note } from '../change.ts';
import { compileGlobs } from '../../routing/glob.ts';
import { type PoolReply, askAwake, readDirectory } from '../../overview/pools.ts';
import type { CallFilter, GroupRpc } from '../../contract/rpc/group-rpc.ts';
import { leaseSchema, poolFailureSchema, waiterSchema } from '../../contract/group-status.ts';

/** Maximum length of a list of calls. */
const LISTED_MAX = 1_000;

export const text = z.string().min(1).max(300);

/** Selects calls that match all given fields. */
const callFilter = {
  group: text
    .exactOptional()
    .describe('Pattern of groups, such as `openai-*`. Defaults to all groups.'),
  tenant: text.exactOptional().describe('Tenant that the calls are charged to.'),
  agent: text.exactOptional().describe('Agent run of the calls.'),
  model: text.exactOptional().describe('Model of the calls.'),
  upstream: text.exactOptional().describe('Upstream of the calls.'),
};

const listQuery = z.strictObject({
  ...callFilter,
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(LISTED_MAX)
    .default(LISTED_MAX)
    .describe('Maximum number of calls to return.'),
});

export const actQuery = z.strictObject({
  ...callFilter,
  dry_run: z
    .enum(['true', 'false'])
    .default('false')
    .describe('`true` returns the number of calls, and changes nothing.'),
});

const groupOfCall = z.string().describe('Name of the group.');

const unreachablePools = z.array(poolFailureSchema).describe('Pools that did not respond.');

const doneSchema = z.object({
  calls: z.int().min(0).describe('Number of affected calls.'),
  groups: z
    .record(z.string(), z.int())
    .describe('Affected calls by group. A call with slots in several groups counts in each.'),
  dry_run: z.boolean().describe('Whether this was a dry run.'),
  unreachable: unreachablePools,
});

export function switchOfAll(summary: string, effect: string) {
  return {
    tag: 'groups',
    summary,
    description: `${effect} Sets \`paused\` at the top of the configuration, which applies to configured, automatic and future groups. Calls in flight finish.`,
    role: 'operator',
    answers: {
      200: changedSchema.extend({
        paused: z.boolean().describe('Whether the whole deployment is paused.'),
      }),
    },
    hasEtag: true,
    takesIfMatch: true,
  } as const;
}

function actOn(summary: string, description: string) {
  return {
    tag: 'groups',
    summary,
    description: `${description} Requires at least one of \`tenant\`, \`agent\`, \`model\` and \`upstream\`.`,
    role: 'operator',
    query: actQuery,
    answers: { 200: doneSchema },
  } as const;
}

type ActQuery = z.output<typeof actQuery>;

type Called = Readonly<Record<keyof CallFilter, string | null>>;

export const BULK_ROUTES = {
  listAllLeases: route('GET /leases', {
    tag: 'groups',
    summary: 'List the leases of all groups, the oldest first',
    role: 'viewer',
    query: listQuery,
    answers: {
      200: z.object({
        leases: z
          .array(leaseSchema.extend({ group: groupOfCall }))
          .describe('Leases, the oldest first.'),
        total: z
          .int()
          .min(0)
          .describe('Total number of leases, listed or not. A call has one in each of its groups.'),
        unreachable: unreachablePools,
      }),
    },
  }).servedBy(async ({ context, query }) => {
    const asked = await askAll(context, query.group, (pool) => pool.leases());
    const meant = listed(asked, query).toSorted((a, b) => b.age_ms - a.age_ms);
    const leases = meant.slice(0, query.limit);
    return {
      status: 200,
      body: { leases, total: meant.length, unreachable: unreachableAnywhere(asked) },
    };
  }),

  releaseLeases: route(
    'DELETE /leases',
    actOn(
      'Revoke the slots of all matching calls',
      'Aborts each upstream call first. The slot becomes free after that.',
    ),
  ).servedBy(async ({ context, query }) =>
    act(context, query, 'release leases', (pool, filter, isDry) => pool.revokeAll(filter, isDry)),
  ),

  listAllWaiters: route('GET /waiters', {
    tag: 'groups',
    summary: 'List the queued calls of all groups, the oldest first',
    role: 'viewer',
    query: listQuery,
    answers: {
      200: z.object({
        waiters: z
          .array(waiterSchema.extend({ group: groupOfCall }))
          .describe('Waiters, the oldest first.'),
        total: z.int().min(0).describe('Total number of waiters, listed or not.'),
        unreachable: unreachablePools,
      }),
    },
  }).servedBy(async ({ context, query }) => {
    const asked = await askAll(context, query.group, (pool) => pool.waiters());
    const meant = listed(asked, query).toSorted((a, b) => b.waited_ms - a.waited_ms);
    const waiters = meant.slice(0, query.limit);
    return {
      status: 200,
      body: { waiters, total: meant.length, unreachable: unreachableAnywhere(asked) },
    };
  }),

  cancelWaiters: route(
    'DELETE /waiters',
    actOn(
      'Remove all matching calls from their queues',
      'Each call is rejected as `cancelled`, which clients must not retry.',
    ),
  ).servedBy(async ({ context, query }) =>
    act(context, query, 'cancel waiters', (pool, filter, isDry) => pool.dismissAll(filter, isDry)),
  ),
};

async function act(
  context: AdminContext,
  { group, dry_run: dryRun, ...fields }: ActQuery,
  what: string,
  work: (pool: GroupRpc, filter: CallFilter, isDry: boolean) => Promise<string[]>,
) {
  const filter = filterOf(fields);
  const isDry = dryRun === 'true';
  if (Object.keys(filter).length === 0) {
    const message = 'name at least one of tenant, agent, model and upstream';
    throw invalid([{ path: 'tenant', message }]);
  }
  const asked = await askAll(context, group, (pool) => work(pool, filter, isDry));
  const groups: Record<string, number> = {};
  // A call has a slot in each of its groups, but counts once.
  const tickets = new Set<string>();
  for (const one of asked) {
    const found = 'answer' in one ? one.answer : [];
    for (const ticket of found) tickets.add(ticket);
    if (found.length > 0) groups[one.pool.group] = (groups[one.pool.group] ?? 0) + found.length;
  }
  const calls = tickets.size;
  if (!isDry && calls > 0) {
    const meant = Object.entries({ ...filter, ...(group === undefined ? {} : { group }) });
    const which = meant.map(([field, value]) => `${field} ${value}`).join(', ');
    await note(context, `${what} of ${which}: ${calls}`);
  }
  return {
    status: 200,
    body: { calls, groups, dry_run: isDry, unreachable: unreachableAnywhere(asked) },
  } as const;
}

/** Queries the active pools of the matching groups. Idle pools hold nothing, and are not woken. */
async function askAll<T>(
  { env }: AdminContext,
  group: string | undefined,
  ask: (pool: GroupRpc) => Promise<readonly T[]>,
): Promise<PoolReply<readonly T[]>[]> {
  const directory = await readDirectory(env);
  const isMeant = group === undefined ? () => true : compileGlobs([group]);
  const pools = directory.pools.filter((pool) => isMeant(pool.group));
  return askAwake(env, directory, pools, ask, () => []);
}

/** Returns the matching calls of the pools, each with its group. */
function listed<T extends Called>(asked: readonly PoolReply<readonly T[]>[], query: CallFilter) {
  const filter = Object.entries(filterOf(query)) as [keyof CallFilter, string][];
  return asked.flatMap(({ pool: { group, partition }, ...one }) =>
    'answer' in one
      ? one.answer
          .filter((call) => filter.every(([field, value]) => call[field] === value))
          .map((call) => ({ ...call, group, partition }))
      : [],
  );
}

function filterOf({ tenant, agent, model, upstream }: CallFilter): CallFilter {
  return {
    ...(tenant === undefined ? {} : { tenant }),
    ...(agent === undefined ? {} : { agent }),
    ...(model === undefined ? {} : { model }),
    ...(upstream === undefined ? {} : { upstream }),
  };
}

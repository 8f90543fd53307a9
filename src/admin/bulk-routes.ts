import type { CheckedPart } from '../contract/admin/route.ts';
import type { AdminRoutes } from '../contract/admin/routes.ts';
import type { CallFilter, GroupRpc } from '../contract/rpc/group-rpc.ts';
import { askAwake, readDirectory, type PoolReply } from '../overview/pools.ts';
import { compileGlobs } from '../routing/glob.ts';
import { note } from './change.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { invalid, serve } from './serve.ts';

export function addBulkRoutes(app: AdminApp): void {
  serve(app, 'listAllLeases', async ({ context, query }) => {
    const asked = await askAll(context, query.group, (pool) => pool.leases());
    const meant = listed(asked, query).toSorted((a, b) => b.age_ms - a.age_ms);
    const leases = meant.slice(0, query.limit);
    return { status: 200, body: { leases, total: meant.length, unreachable: failures(asked) } };
  });

  serve(app, 'listAllWaiters', async ({ context, query }) => {
    const asked = await askAll(context, query.group, (pool) => pool.waiters());
    const meant = listed(asked, query).toSorted((a, b) => b.waited_ms - a.waited_ms);
    const waiters = meant.slice(0, query.limit);
    return { status: 200, body: { waiters, total: meant.length, unreachable: failures(asked) } };
  });

  serve(app, 'releaseLeases', async ({ context, query }) =>
    act(context, query, 'release leases', (pool, filter, isDry) => pool.revokeAll(filter, isDry)),
  );

  serve(app, 'cancelWaiters', async ({ context, query }) =>
    act(context, query, 'cancel waiters', (pool, filter, isDry) => pool.dismissAll(filter, isDry)),
  );
}

type ActQuery = CheckedPart<AdminRoutes['releaseLeases'], 'query'>;

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
    body: { calls, groups, dry_run: isDry, unreachable: failures(asked) },
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

type Called = Readonly<Record<keyof CallFilter, string | null>>;

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

function failures(asked: readonly PoolReply<unknown>[]) {
  return asked.flatMap(({ pool: { group, partition }, ...one }) =>
    'error' in one ? [{ group, partition, error: one.error }] : [],
  );
}

import type { Env } from '../../contract/env.ts';
import type { PoolStatus } from '../../contract/pool-status.ts';
import type { PlacedPool } from '../../contract/pool.ts';
import { overlaps, type Overlap } from '../../routing/overlaps.ts';
import { groupStatus, type GroupStatus } from './group-status.ts';
import type { AdminApp, AdminContext } from './context.ts';
import {
  askPools,
  isLongIdle,
  readDirectory,
  requirePools,
  type Asked,
  type Directory,
} from './pools.ts';
import { ProblemError } from './problem.ts';
import { serve } from './serve.ts';

/** What objects of the release before do not tell for the minutes after a deploy. */
const UNKNOWN = {
  queued_by_lane: { high: 0, normal: 0, low: 0 },
  draining: false,
  dry_run: false,
  would_wait_total: 0,
  idle_ms: 0,
  wait_p50_ms: null,
  wait_p95_ms: null,
};

/** A request may make a bounded number of calls, and has made most of them by then. */
const FORGOTTEN_AT_ONCE = 100;

/** The state of the groups, as their objects tell it at this moment. */
export function addStatusRoutes(app: AdminApp): void {
  serve(app, 'getStatus', async ({ context }) => {
    const directory = await readDirectory(context.env);
    const { version } = directory;
    return { status: 200, body: { version, groups: await statusOfAll(context, directory) } };
  });

  serve(app, 'getGroupStatus', async ({ context, params: { name } }) => {
    const directory = await readDirectory(context.env);
    const pools = requirePools(directory, name);
    const [group] = await statusOf(context, directory, [name], pools);
    if (group === undefined) throw new ProblemError(404, `Nothing is known of "${name}" any more.`);
    return { status: 200, body: group };
  });
}

/** Every group that anything is known of, configured ones first. */
export function statusOfAll(context: AdminContext, directory: Directory): Promise<GroupStatus[]> {
  const names = new Set([
    ...directory.config.groups.map((group) => group.name),
    ...directory.pools.map((pool) => pool.group).sort(),
  ]);
  return statusOf(context, directory, [...names], directory.pools);
}

async function statusOf(
  context: AdminContext,
  directory: Directory,
  names: readonly string[],
  pools: readonly PlacedPool[],
): Promise<GroupStatus[]> {
  const { config } = directory;
  const asked = await askPools(context.env, config, pools, async (pool) => ({
    ...UNKNOWN,
    ...(await pool.status()),
  }));
  const byGroup = Map.groupBy(
    asked.filter((one) => !isLongIdle(one, config)),
    (one) => one.pool.group,
  );
  context.executionCtx.waitUntil(forgetIdle(context.env, directory, asked));
  const meeting = overlapsOf(directory);
  return names.flatMap((name) => groupStatus(name, config, byGroup.get(name) ?? [], meeting) ?? []);
}

/** Asks pools that nobody used for long to leave the list. They are listed again at their next 2xx. */
async function forgetIdle(
  env: Env,
  { config }: Directory,
  asked: readonly Asked<PoolStatus>[],
): Promise<void> {
  const idle = asked.filter((one) => isLongIdle(one, config)).map((one) => one.pool);
  await askPools(env, config, idle.slice(0, FORGOTTEN_AT_ONCE), (pool, { jurisdiction = null }) =>
    pool.forget(jurisdiction),
  );
}

/** Overlaps cost the square of the number of groups, and dashboards ask every few seconds. */
let known: { readonly of: string; readonly overlaps: readonly Overlap[] } | null = null;

function overlapsOf({ fingerprintKey, version, config }: Directory): readonly Overlap[] {
  // The key tells one directory's version 3 from another's.
  const of = `${fingerprintKey} ${version}`;
  if (known?.of !== of) known = { of, overlaps: overlaps(config) };
  return known.overlaps;
}

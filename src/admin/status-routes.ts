import type { PlacedPool } from '../routing/pool.ts';
import { mayWaitElsewhere, namesWithWaiting, statusOfGroups } from '../overview/all-groups.ts';
import type { GroupStatus } from '../contract/admin/status-schemas.ts';
import { askAwake, forgetIdle, readDirectory, type Directory } from '../overview/pools.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { requirePools } from './pools.ts';
import { ProblemError } from './problem.ts';
import { serve } from './serve.ts';

/** Active groups are queried. Idle ones are shown as they last reported. */
export function addStatusRoutes(app: AdminApp): void {
  serve(app, 'getStatus', async ({ context }) => {
    const directory = await readDirectory(context.env);
    const { version, config } = directory;
    const groups = await statusOfAll(context, directory);
    return { status: 200, body: { version, paused: config.paused, groups } };
  });

  serve(app, 'getGroupStatus', async ({ context, params: { name } }) => {
    const directory = await readDirectory(context.env);
    const own = requirePools(directory, name);
    const others = mayWaitElsewhere(directory)
      ? directory.pools.filter((pool) => pool.group !== name)
      : [];
    const [group] = await statusOf(context, directory, [name], [...own, ...others]);
    if (group === undefined) throw new ProblemError(404, `No group \`${name}\` is known any more.`);
    return { status: 200, body: group };
  });
}

/** Returns the status of all known groups, configured ones first. */
export function statusOfAll(context: AdminContext, directory: Directory): Promise<GroupStatus[]> {
  return statusOf(context, directory, null, directory.pools);
}

/** @param names null for all groups */
async function statusOf(
  context: AdminContext,
  directory: Directory,
  names: readonly string[] | null,
  pools: readonly PlacedPool[],
): Promise<GroupStatus[]> {
  const asked = await askAwake(
    context.env,
    directory,
    pools,
    (pool) => pool.status(),
    ({ status }) => status,
  );
  context.executionCtx.waitUntil(forgetIdle(context.env, directory, asked));
  return statusOfGroups(directory, names ?? namesWithWaiting(directory, asked), asked);
}

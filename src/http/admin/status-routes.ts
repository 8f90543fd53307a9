import type { Hono } from 'hono';
import type { Env } from '../../contract/env.ts';
import type { PlacedPool } from '../../contract/pool.ts';
import { overlaps, type Overlap } from '../../routing/overlaps.ts';
import { groupStatus, type GroupStatus } from './group-status.ts';
import { requirePools } from './lease-routes.ts';
import { askPools, readDirectory, type Directory } from './pools.ts';
import { ProblemError } from './problem.ts';

/** The state of the groups, as their objects tell it at this moment. */
export function addStatusRoutes(app: Hono<{ Bindings: Env }>): void {
  app.get('/status', async (context) => {
    const directory = await readDirectory(context.env);
    const names = new Set([
      ...directory.config.groups.map((group) => group.name),
      ...directory.pools.map((pool) => pool.group).sort(),
    ]);
    const groups = await statusOf(context.env, directory, [...names], directory.pools);
    return context.json({ version: directory.version, groups });
  });

  app.get('/groups/:name/status', async (context) => {
    const name = context.req.param('name');
    const directory = await readDirectory(context.env);
    const pools = requirePools(directory, name);
    const [group] = await statusOf(context.env, directory, [name], pools);
    if (group === undefined) throw new ProblemError(404, `There is no group "${name}".`);
    return context.json(group);
  });
}

async function statusOf(
  env: Env,
  directory: Directory,
  names: readonly string[],
  pools: readonly PlacedPool[],
): Promise<GroupStatus[]> {
  const asked = await askPools(env, directory.config, pools, (pool) => pool.status());
  const byGroup = Map.groupBy(asked, (one) => one.pool.group);
  const meeting = overlapsOf(directory);
  return names.flatMap(
    (name) => groupStatus(name, directory.config, byGroup.get(name) ?? [], meeting) ?? [],
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

import { groupSchema } from '../contract/config/group.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { autoGroupNamed } from '../routing/auto-groups.ts';
import { askPools, readDirectory } from '../overview/pools.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import type { AdminContext } from './context.ts';
import { noAutoGroup, poolsOf } from './pools.ts';

/**
 * Returns the entry in `groups` that leaves an automatic group unchanged, with its switches and its current limit. The
 * limit is the largest of its pools, because what the others have learned still applies to them. Throws if there is no
 * such group.
 */
export async function entryOfAutomatic({ env }: AdminContext, name: string): Promise<GroupConfig> {
  const directory = await readDirectory(env);
  const { config } = directory;
  const group = autoGroupNamed(name, resolveUpstreams(config, BUILT_IN_UPSTREAMS));
  if (group === null) throw noAutoGroup(name);
  const asked = await askPools(env, config, poolsOf(directory, name), (pool) => pool.status());
  const limits = asked.flatMap((one) =>
    'answer' in one ? (one.answer.limit.effective ?? []) : [],
  );
  const set = config.auto_groups.find((each) => each.name === name);
  return groupSchema.parse({
    ...set,
    name,
    limits: { max_concurrency: Math.max(group.assumed.slotsMax, ...limits) },
  });
}

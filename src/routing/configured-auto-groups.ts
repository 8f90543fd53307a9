import type { GroupConfig } from '../contract/config/config.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';

/**
 * Automatic groups that have an entry of their own in `groups`: the same calls in the same pools, by the limits and
 * settings that an operator gave them. So nothing of what a pool has learned, holds or has queued changes hands.
 */

/** Tells whether a name is that of an automatic group, configured or not. */
export function isAutomatic({ name }: Pick<GroupConfig, 'name'>): boolean {
  return name.startsWith(AUTO_PREFIX);
}

/** Lists the groups that match calls by their patterns. The others stand in the place of automatic ones. */
export function matchingGroups(groups: readonly GroupConfig[]): GroupConfig[] {
  return groups.filter((group) => !isAutomatic(group));
}

/** Fills in what the name of an automatic group says of its calls and of its pools: nothing else can be said of them. */
export function withImpliedWay(group: GroupConfig): GroupConfig {
  if (!isAutomatic(group)) return group;
  const [, id = '', models] = /^auto:([^/]*)(?:\/(.*))?$/.exec(group.name) ?? [];
  return {
    ...group,
    match: {
      models: models === undefined ? [] : [`${models}*`],
      upstreams: [id],
      base_urls: [],
      keys: [],
      operations: [],
      paths: [],
      methods: [],
      references: group.match.references,
    },
    // Each provider key has its own, as without an entry.
    partition_by: ['api_key'],
  };
}

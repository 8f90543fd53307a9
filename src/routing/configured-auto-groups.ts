import type { GroupConfig } from '../contract/config/config.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';

// An automatic group may have an entry of its own in `groups`. It has the same calls and the same pools as before, with
// the limits and settings of the entry, so that pools keep their slots, queues and what they learned.
export function isAutomatic({ name }: Pick<GroupConfig, 'name'>): boolean {
  return name.startsWith(AUTO_PREFIX);
}

/** Returns the groups that match calls by patterns. The others replace automatic groups. */
export function matchingGroups(groups: readonly GroupConfig[]): GroupConfig[] {
  return groups.filter((group) => !isAutomatic(group));
}

/** Adds the matched calls and the pools that the name of an automatic group implies. Its entry cannot set others. */
export function withImpliedMatch(group: GroupConfig): GroupConfig {
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
    // Each provider key has its own pool, as in an automatic group without an entry.
    partition_by: ['api_key'],
  };
}

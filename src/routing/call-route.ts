import type { GroupConfig } from '../contract/config/config.ts';
import { membersOf } from './members.ts';

/**
 * Returns the settings that decide which calls a group takes, into which pool, and where a Worker sends them. Waiters
 * are placed again when they change, because a grant has only the id of a member.
 */
export function callRoute(group: GroupConfig): object {
  const { match, partition_by, jurisdiction } = group;
  const places = membersOf(group).map(({ config: { name, upstream, secret, models } }) => ({
    name,
    upstream,
    secret,
    models,
  }));
  return { match, partition_by, jurisdiction, members: places };
}

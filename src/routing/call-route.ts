import type { GroupConfig } from '../contract/config/config.ts';
import { membersOf } from './members.ts';

/**
 * Picks what decides which calls a group takes, into which pool, and what a Worker must know to send them on: a grant
 * names no more than the id of a member. Who waits when it changes is routed again.
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

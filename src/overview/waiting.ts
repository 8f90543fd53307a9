import type { GroupStatus } from '../contract/admin/status-schemas.ts';
import type { PoolStatus } from '../contract/status.ts';
import type { PoolReply } from './pools.ts';

type NeededElsewhere = Pick<PoolStatus, 'needed_elsewhere'>;

/**
 * Returns for each group where else its calls are queued. A call of several groups is queued in one of them, and only
 * the pools of that group report which other groups its waiters need.
 */
export function waitingElsewhere(
  replies: readonly PoolReply<NeededElsewhere>[],
): ReadonlyMap<string, NonNullable<GroupStatus['waiting_elsewhere']>> {
  const found = new Map<string, Map<string, number>>();
  for (const one of replies) {
    if ('error' in one) continue;
    for (const [name, calls] of Object.entries(one.answer.needed_elsewhere ?? {})) {
      const group = groupOfPool(name);
      const places = found.get(group) ?? new Map<string, number>();
      found.set(group, places);
      places.set(one.pool.group, (places.get(one.pool.group) ?? 0) + calls);
    }
  }
  return new Map(
    [...found].map(([group, places]) => {
      const all = [...places].map(([where, calls]) => ({ group: where, calls }));
      return [group, all.toSorted((a, b) => b.calls - a.calls || (a.group < b.group ? -1 : 1))];
    }),
  );
}

export function groupsNeeded({ needed_elsewhere: needed = {} }: NeededElsewhere): string[] {
  return Object.keys(needed).map(groupOfPool);
}

/** Returns the group of a pool name. The name of a group contains no `#`. */
export function groupOfPool(name: string): string {
  return name.split('#', 1)[0] ?? name;
}

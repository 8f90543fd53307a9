import { STATES, useOf } from './group-state.ts';
import type { GroupView } from './status.ts';

/**
 * Queues and slots in use are compared in coarse steps (factor 2, and tenths), because a list that followed each call
 * would never stop moving.
 */
const queueSize = ({ queued }: GroupView): number => Math.ceil(Math.log2(1 + queued));
const useSize = (group: GroupView): number => Math.floor(useOf(group) * 10);

/** Names of groups, the most urgent first: by attention, then state, queue and use. */
export function byPressure(
  groups: readonly GroupView[],
  rankOf: (name: string) => number,
): readonly string[] {
  const keyed = groups.map((group) => ({
    group,
    rank: rankOf(group.name),
    state: STATES.indexOf(group.state),
    queue: queueSize(group),
    use: useSize(group),
  }));
  return keyed
    .sort(
      (a, b) =>
        (a.rank === b.rank ? 0 : a.rank - b.rank) ||
        a.state - b.state ||
        b.queue - a.queue ||
        b.use - a.use ||
        a.group.name.localeCompare(b.group.name),
    )
    .map(({ group }) => group.name);
}

/** Keeps the order. Removes missing names, and appends new ones. */
export function keepOrder(before: readonly string[], names: readonly string[]): readonly string[] {
  const now = new Set(names);
  const had = new Set(before);
  return [...before.filter((name) => now.has(name)), ...names.filter((name) => !had.has(name))];
}

import { STATES, useOf } from './group-state.ts';
import type { GroupView } from './status.ts';

/**
 * Queues and slots in use are compared by their size alone, twice as long or a tenth more: a list that
 * follows each call would never keep still.
 */
const queueSize = ({ queued }: GroupView): number => Math.ceil(Math.log2(1 + queued));
const useSize = (group: GroupView): number => Math.floor(useOf(group) * 10);

/** Names with the most pressed group first: what needs attention, then by state, queue and use. */
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

/** The same order without what is gone, and with what is new at its end: nothing else moves. */
export function keepOrder(before: readonly string[], names: readonly string[]): readonly string[] {
  const now = new Set(names);
  const had = new Set(before);
  return [...before.filter((name) => now.has(name)), ...names.filter((name) => !had.has(name))];
}

import { slotsOfGroup } from './slots.ts';
import type { GroupStatus } from './status.ts';
import { refusedTotal } from './trend.ts';

/** All groups taken together. */
export interface Totals {
  readonly groups: number;
  readonly inUse: number;
  /** Slots of the groups that have a limit. */
  readonly slots: number;
  readonly waiting: number;
  readonly oldestWaitMs: number;
  readonly rejected: number;
  readonly refused: number;
  /** USD of this day, by UTC. Null: nobody counts cost. */
  readonly dayUsd: number | null;
}

/** Adds all groups up. A call that needs a slot in several groups counts in each. */
export function totalsOf(groups: readonly GroupStatus[]): Totals {
  const sum = (of: (group: GroupStatus) => number): number =>
    groups.reduce((total, group) => total + of(group), 0);
  return {
    groups: groups.length,
    inUse: sum((group) => group.in_use),
    slots: sum((group) => slotsOfGroup(group).capacity ?? 0),
    waiting: sum((group) => group.queued),
    oldestWaitMs: Math.max(0, ...groups.map((group) => group.oldest_wait_ms)),
    rejected: sum((group) => Object.values(group.rejected_total).reduce((a, b) => a + b, 0)),
    refused: sum(refusedTotal),
    dayUsd: groups.some(({ spend }) => spend !== null)
      ? sum((group) => group.spend?.day_usd ?? 0)
      : null,
  };
}

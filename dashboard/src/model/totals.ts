import { refusedForLimits } from '../../../src/core/words/signal.ts';
import { slotsOfGroup } from './slots.ts';
import type { GroupView } from './status.ts';
import { oldestWaitMs } from './oldest-wait.ts';

/** All groups taken together. */
export interface TotalsView {
  readonly groups: number;
  readonly inUse: number;
  /** Slots of the groups that have a limit. */
  readonly slots: number;
  readonly waiting: number;
  readonly oldestWaitMs: number;
  /** Calls granted and refused here, and refusals of upstreams for their limits, in the last hour. */
  readonly granted: number;
  readonly rejected: number;
  readonly refused: number;
  /** USD of this day, by UTC. Null: nobody counts cost. */
  readonly dayUsd: number | null;
}

/** Adds all groups up. A call that needs a slot in several groups counts in each. */
export function totalsOf(
  groups: readonly GroupView[],
  reportedAtOf: (name: string) => number | undefined,
  nowMs: number,
): TotalsView {
  const sum = (of: (group: GroupView) => number): number =>
    groups.reduce((total, group) => total + of(group), 0);
  return {
    groups: groups.length,
    inUse: sum((group) => group.in_use),
    slots: sum((group) => slotsOfGroup(group).capacity ?? 0),
    waiting: sum((group) => group.queued),
    oldestWaitMs: Math.max(
      0,
      ...groups.map((group) => oldestWaitMs(group, reportedAtOf(group.name), nowMs)),
    ),
    granted: sum(({ last_hour: { granted } }) => granted),
    rejected: sum(({ last_hour: { rejected } }) => countOf(rejected)),
    refused: sum(({ last_hour: { refusals } }) => refusedForLimits(refusals)),
    dayUsd: groups.some(({ spend }) => spend !== null)
      ? sum((group) => group.spend?.day_usd ?? 0)
      : null,
  };
}

/** Adds up counts by name. */
function countOf(byName: Readonly<Record<string, number>>): number {
  return Object.values(byName).reduce((sum, count) => sum + count, 0);
}

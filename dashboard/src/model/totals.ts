import { refusedForLimits } from '../../../src/core/words/signal.ts';
import { slotsOfGroup } from './slots.ts';
import type { GroupView } from './status.ts';
import { oldestWaitMs } from './oldest-wait.ts';

export interface TotalsView {
  readonly groups: number;
  readonly inUse: number;
  /** Slots of groups with a limit. */
  readonly slots: number;
  readonly waiting: number;
  readonly oldestWaitMs: number;
  /** Counts of the last hour: granted and rejected calls, and upstream refusals because of limits. */
  readonly granted: number;
  readonly rejected: number;
  readonly refused: number;
  /** Spend of the current UTC day. null if no group tracks cost. */
  readonly dayUsd: number | null;
}

/** Sums all groups. A call counts in each of its groups. */
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

function countOf(byName: Readonly<Record<string, number>>): number {
  return Object.values(byName).reduce((sum, count) => sum + count, 0);
}

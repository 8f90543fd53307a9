import { GROUP_STATES } from '../../../src/contract/status-words.ts';
import { stoppedWords } from './scope-words.ts';
import { slotsOfGroup } from './slots.ts';
import type { GroupView } from './status.ts';

/** States of a group, the most severe first. Pages show the word wherever they show the colour. */
export const STATES = GROUP_STATES;

export type GroupStateName = GroupView['state'];

/** Detail of a state, such as which limit is used up. null if there is none. */
export function stateDetail(
  group: Pick<
    GroupView,
    'state' | 'rate_used_up' | 'budget_spent' | 'about' | 'scopes' | 'paused_until' | 'breaker'
  >,
): string | null {
  const { state, rate_used_up: rate, budget_spent: budget } = group;
  if (state === 'rate limited' && rate !== null) return `no ${rate} left`;
  if (state === 'partly paused') return stoppedWords(group);
  if (state === 'budget spent' && budget !== null) return `this ${budget.window}`;
  return null;
}

/** Whether the limit was learned from the upstream, rather than configured. */
export function isLearned({ limit }: Pick<GroupView, 'limit'>): boolean {
  return limit.source === 'learned';
}

/** Part of its slots that a group uses, from 0 to beyond 1. */
export function useOf(group: GroupView): number {
  const slots = slotsOfGroup(group).capacity;
  return slots === null || slots === 0 ? 0 : (group.in_use + group.cooling) / slots;
}

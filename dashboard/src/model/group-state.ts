import { GROUP_STATES } from '../../../src/contract/admin/group-states.ts';
import { stoppedWords } from './scope-words.ts';
import { slotsOfGroup } from './slots.ts';
import type { GroupView } from './status.ts';

/** States of a group, each in the word that pages show wherever they show its colour; the worst first. */
export const STATES = GROUP_STATES;

export type GroupStateName = GroupView['state'];

/** Says more of a state, as far as there is more: which limit, and of which time. */
export function stateDetail(
  group: Pick<
    GroupView,
    'state' | 'rate_used_up' | 'budget_spent' | 'about' | 'scopes' | 'paused_until' | 'breaker'
  >,
): string | null {
  const { state, rate_used_up: rate, budget_spent: budget } = group;
  if (state === 'rate limited' && rate !== null) return `no ${rate} left`;
  if (state === 'partly paused') return stoppedWords(group);
  if (state === 'budget spent' && budget !== null) return `of this ${budget.window}`;
  return null;
}

/** Whether what the upstream has shown to take, and not the configuration, is its limit. */
export function isLearned({ limit }: Pick<GroupView, 'limit'>): boolean {
  return limit.source === 'learned';
}

/** The part of its slots that a group uses, from 0 to 1 and beyond. */
export function useOf(group: GroupView): number {
  const slots = slotsOfGroup(group).capacity;
  return slots === null || slots === 0 ? 0 : (group.in_use + group.cooling) / slots;
}

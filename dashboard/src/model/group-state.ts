import { slotsOfGroup } from './slots.ts';
import type { GroupStatus } from './status.ts';

/** States of a group, each in the word that pages show wherever they show its colour; the worst first. */
export const STATES = [
  'unreachable',
  'broken',
  'paused',
  'full',
  'draining',
  'learning',
  'dry run',
  'flowing',
] as const;

export type GroupState = (typeof STATES)[number];

/** Picks what is most worth knowing of a group at this moment. */
export function stateOf(group: GroupStatus): GroupState {
  if (group.error !== undefined && group.in_use + group.queued === 0) return 'unreachable';
  if (group.breaker !== 'closed') return 'broken';
  if (group.paused || group.paused_until !== null) return 'paused';
  if (group.draining) return 'draining';
  if (group.dry_run) return 'dry run';
  if (isFull(group)) return 'full';
  if (group.limit.source === 'learned') return 'learning';
  return 'flowing';
}

function isFull(group: GroupStatus): boolean {
  return group.queued > 0 || useOf(group) >= 1;
}

/** The part of its slots that a group uses, from 0 to 1 and beyond. */
export function useOf(group: GroupStatus): number {
  const slots = slotsOfGroup(group).capacity;
  return slots === null || slots === 0 ? 0 : (group.in_use + group.cooling) / slots;
}

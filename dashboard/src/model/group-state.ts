import type { GroupStatus } from './status.ts';

/** The state of a group in one word; pages show the word wherever they show its colour. */
export type GroupState =
  | 'flowing'
  | 'full'
  | 'paused'
  | 'learning'
  | 'broken'
  | 'draining'
  | 'dry run'
  | 'unreachable';

/** What is most worth knowing of a group at this moment. */
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

/** Slots that one more call could not have. Several partitions have the limit each. */
export function slotsOf(group: GroupStatus): number | null {
  const { effective } = group.limit;
  const pools = Math.max(1, group.partitions.length);
  return effective === null ? null : effective * pools;
}

function isFull(group: GroupStatus): boolean {
  const slots = slotsOf(group);
  return group.queued > 0 || (slots !== null && slots > 0 && group.in_use + group.cooling >= slots);
}

/** Why a group needs somebody to look at it, the worst first. Null: it does not. */
export function attentionOf(group: GroupStatus): string | null {
  const state = stateOf(group);
  if (state === 'unreachable') return group.error ?? 'cannot be reached';
  if (group.error !== undefined) return group.error;
  if (state === 'broken') return 'the upstream fails, the breaker is open';
  if (group.paused) return `paused by an operator${waiting(group)}`;
  if (group.paused_until !== null) return `the upstream wants no calls now${waiting(group)}`;
  return state === 'full' && group.oldest_wait_ms > LONG_WAIT_MS ? `full${waiting(group)}` : null;
}

/** Most callers give up after about as long, and operators want to know before. */
const LONG_WAIT_MS = 30_000;

function waiting({ queued }: GroupStatus): string {
  return queued === 0 ? '' : `, ${queued} waiting`;
}

const RANK: Readonly<Record<GroupState, number>> = {
  unreachable: 0,
  broken: 1,
  paused: 2,
  full: 3,
  draining: 4,
  learning: 5,
  'dry run': 6,
  flowing: 7,
};

/** Sorts the most pressed groups first: what needs attention, then the longest queue, then the fullest. */
export function byPressure(a: GroupStatus, b: GroupStatus): number {
  return (
    Number(attentionOf(b) !== null) - Number(attentionOf(a) !== null) ||
    RANK[stateOf(a)] - RANK[stateOf(b)] ||
    b.queued - a.queued ||
    useOf(b) - useOf(a) ||
    a.name.localeCompare(b.name)
  );
}

/** The part of its slots that a group uses, from 0 to 1 and beyond. */
function useOf(group: GroupStatus): number {
  const slots = slotsOf(group);
  return slots === null || slots === 0 ? 0 : (group.in_use + group.cooling) / slots;
}

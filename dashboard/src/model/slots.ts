import { slotsTaken } from '../../../src/contract/status-words.ts';
import type { GroupView } from './status.ts';

/** Gauges of one pool, or of all pools of a group together. */
export type SlotGauges = Pick<
  GroupView,
  'limit' | 'in_use' | 'cooling' | 'unclaimed' | 'lent' | 'queued'
>;

/** Maximum of slots shown individually. Smaller cells would be too small to count. */
export const CELLS_MAX = 64;

/** Slots of a pool, in the order in which they are shown. */
export interface Slots {
  readonly inUse: number;
  /** Current limit. null means no limit. */
  readonly capacity: number | null;
  /** Unavailable for a moment after a call ended. */
  readonly cooling: number;
  /** Orphaned by the last reset: their calls may still run, and can reclaim them. */
  readonly unclaimed: number;
  /** Prefetched by Workers, with no call on them. */
  readonly lent: number;
  /** null if there is no limit. */
  readonly free: number | null;
  /** Configured, but above the learned limit. */
  readonly beyond: number;
  /** Number of slots before the learned ceiling. null if none is shown. */
  readonly ceilingAt: number | null;
}

/** Slots of one pool. After a limit was lowered, more may be in use than exist. */
export function slotsOfPool(pool: SlotGauges): Slots {
  const { limit, in_use: inUse, cooling, unclaimed: orphaned, lent } = pool;
  const held = { inUse, cooling, unclaimed: orphaned, lent };
  const taken = slotsTaken(pool);
  const { effective, configured } = limit;
  if (effective === null) {
    return { ...held, capacity: null, free: null, beyond: 0, ceilingAt: null };
  }
  const beyond = Math.max(0, (configured ?? 0) - Math.max(effective, taken));
  const isPastCeiling = limit.source === 'learned' && taken > effective;
  return {
    ...held,
    capacity: effective,
    free: Math.max(0, effective - taken),
    beyond,
    ceilingAt: beyond > 0 || isPastCeiling ? effective : null,
  };
}

/** Slots of a group: the sum of its pools. Retired pools have no free slots. */
export function slotsOfGroup(group: GroupView): Slots {
  const pools = group.partitions.flatMap((pool) => {
    if ('error' in pool) return [];
    const slots = slotsOfPool(pool);
    return pool.retired === true
      ? [{ ...slots, capacity: 0, free: 0, beyond: 0, ceilingAt: null }]
      : [slots];
  });
  if (pools.length === 0) return slotsOfPool(group);
  const [first] = pools;
  if (pools.length === 1 && first !== undefined) return first;
  const sum = (of: (slots: Slots) => number): number =>
    pools.reduce((total, slots) => total + of(slots), 0);
  const sumOrAny = (of: (slots: Slots) => number | null): number | null =>
    pools.some((slots) => of(slots) === null) ? null : sum((slots) => of(slots) ?? 0);
  const held = {
    inUse: sum((slots) => slots.inUse),
    cooling: sum((slots) => slots.cooling),
    unclaimed: sum((slots) => slots.unclaimed),
    lent: sum((slots) => slots.lent),
  };
  const beyond = sum((slots) => slots.beyond);
  const free = sumOrAny((slots) => slots.free);
  const capacity = sumOrAny((slots) => slots.capacity);
  const slots = { ...held, capacity, free, beyond };
  return { ...slots, ceilingAt: beyond === 0 ? null : cellsOf(slots) - beyond };
}

export function cellsOf({
  inUse,
  cooling,
  unclaimed,
  lent,
  free,
  beyond,
}: Omit<Slots, 'capacity' | 'ceilingAt'>): number {
  return inUse + cooling + unclaimed + lent + (free ?? 0) + beyond;
}

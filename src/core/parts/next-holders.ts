import { after, type InstantMs, type LeaseId, type MemberId } from '../words/ids.ts';
import { COVERS_MS, writesOf, type Bound, type BoundWrite } from './bound.ts';

/**
 * Slots that are handed over without waiting for a write. A write lists the next waiters in advance, as next holders of
 * the leases that end next. A later instance accounts for that: a slot released to it may already belong to one of
 * them.
 */

/** A lease, and the leases that had its slot before. */
interface HandedOverSlot {
  readonly id: LeaseId;
  readonly member: MemberId;
  readonly heirOf: readonly LeaseId[];
}

export const NEXT_HOLDERS_MAX = 8;

/**
 * Notes that a slot was freed by the only release of its holder, so that no instance receives anything else about the
 * lease. It does not apply to a lease that its caller may still request from a row.
 */
export function noteVacated(
  bound: Bound,
  { id, member, heirOf: nextHolderOf }: HandedOverSlot,
): void {
  for (const { answering, heirs, vacated } of writesOf(bound)) {
    if (!answering.has(id) && vacated.size < heirs.size) {
      vacated.set(id, { member, heirOf: nextHolderOf });
    }
  }
}

/**
 * Takes a vacated slot of a member for a waiter that every row that may be the last on disk lists as a next holder.
 *
 * @returns the leases that had the slot, newest first. Empty if the waiter is not listed, or if no slot was vacated
 */
export function takeVacated(
  bound: Bound,
  member: MemberId,
  nextHolder: LeaseId,
  now: InstantMs,
): readonly LeaseId[] {
  const { confirmed } = bound;
  if (confirmed === null || now >= after(confirmed.at, COVERS_MS)) return [];
  const writes = writesOf(bound);
  if (!writes.every(({ heirs }) => heirs.has(nextHolder))) return [];
  for (const [id, { member: at, heirOf }] of confirmed.vacated) {
    if (at !== member || !writes.every(({ vacated }) => vacated.has(id))) continue;
    for (const { vacated } of writes) vacated.delete(id);
    return sinceRow(writes, [id, ...heirOf]);
  }
  return [];
}

/** Removes the leases that had a slot before the last row, which a later instance knows from that row. */
function sinceRow(writes: readonly BoundWrite[], line: readonly LeaseId[]): readonly LeaseId[] {
  const first = line.findIndex((id) => !writes.some(({ heirs }) => heirs.has(id)));
  return first < 0 ? line : line.slice(0, first + 1);
}

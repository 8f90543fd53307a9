import { after, type InstantMs, type LeaseId, type MemberId } from '../words/ids.ts';
import { COVERS_MS, writesOf, type Bound, type BoundWrite } from './bound.ts';

/**
 * Slots that change hands without a write on the way. A write lists the next waiters ahead of time, as heirs of
 * whichever leases end next. An instance that comes after counts with it: what is given back to it may have been
 * passed to one of them.
 */

/** A lease, and those that had its slot before it. */
interface HandedOverSlot {
  readonly id: LeaseId;
  readonly member: MemberId;
  readonly heirOf: readonly LeaseId[];
}

/** Maximum heirs that a write lists. */
export const NEXT_HOLDERS_MAX = 8;

/**
 * Notes that the slot of a lease came free by the only word of its holder, so that no instance can hear anything else
 * of it than that it has ended. One whose caller may still ask for it by a row is none of these.
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
 * Takes a vacated slot of a member for a waiter that is listed as an heir by every write that may be the last on disk.
 *
 * @returns the leases that had it, the last one first; empty: the waiter is not listed, or no slot was vacated since
 */
export function takeVacated(
  bound: Bound,
  member: MemberId,
  heir: LeaseId,
  now: InstantMs,
): readonly LeaseId[] {
  const { confirmed } = bound;
  if (confirmed === null || now >= after(confirmed.at, COVERS_MS)) return [];
  const writes = writesOf(bound);
  if (!writes.every(({ heirs }) => heirs.has(heir))) return [];
  for (const [id, { member: at, heirOf }] of confirmed.vacated) {
    if (at !== member || !writes.every(({ vacated }) => vacated.has(id))) continue;
    for (const { vacated } of writes) vacated.delete(id);
    return sinceRow(writes, [id, ...heirOf]);
  }
  return [];
}

/** Cuts those off who had a slot before the last row: whoever reads that knows of them. */
function sinceRow(writes: readonly BoundWrite[], line: readonly LeaseId[]): readonly LeaseId[] {
  const first = line.findIndex((id) => !writes.some(({ heirs }) => heirs.has(id)));
  return first < 0 ? line : line.slice(0, first + 1);
}

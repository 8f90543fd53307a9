import type { LeaseId } from './words/ids.ts';
import type { Ticket } from './words/ticket.ts';
import { mayNotGoTo } from './placing.ts';
import type { GroupState, ActiveLease } from './state.ts';

/**
 * Nested calls are made for a call that holds slots. They may share its slots, at most as many at a time as it has, and
 * only for the same caller. A call made for a nested call shares the same slots. A nested call that has outlived its
 * parent shares its slots with no call, because such a chain would have no end.
 */

/** Returns the lease whose slots this one shares, or null. */
export function passesOn({ slots, nested }: ActiveLease): LeaseId | null {
  return nested !== null && slots === 0 ? nested.in : null;
}

export function noteNested({ nestedIn }: GroupState, lease: ActiveLease): void {
  const root = passesOn(lease);
  if (root === null) return;
  const others = nestedIn.get(root);
  if (others === undefined) nestedIn.set(root, new Set([lease]));
  else others.add(lease);
}

export function forgetNested({ nestedIn }: GroupState, lease: ActiveLease): void {
  const root = passesOn(lease);
  if (root === null) return;
  const others = nestedIn.get(root);
  others?.delete(lease);
  if (others?.size === 0) nestedIn.delete(root);
}

/** Adds up the slots of leases that share another one's slots. */
export function slotsPassing({ nestedIn }: GroupState, root: LeaseId): number {
  let slots = 0;
  for (const { nested } of nestedIn.get(root) ?? []) slots += nested?.slots ?? 0;
  return slots;
}

export function waitsForItself(state: GroupState, ticket: Ticket): boolean {
  const parents = parentsOf(state, ticket);
  if (state.settings.nested === 'reject') return parents.length > 0;
  const passages = parents.flatMap((parent) => passageOf(state, parent, ticket) ?? []);
  return passages.length > 0 && passages.every(({ slotsMax }) => ticket.slots > slotsMax);
}

/** Returns the lease whose slots a call may share now, or null. */
export function findPassage(state: GroupState, ticket: Ticket): LeaseId | null {
  for (const parent of parentsOf(state, ticket)) {
    const passage = passageOf(state, parent, ticket);
    if (passage === null) continue;
    if (ticket.slots + passage.slotsOfOthers <= passage.slotsMax) return passage.leaseId;
  }
  return null;
}

/**
 * Slots that nested calls may use on a lease of an earlier instance before they return. They are among the orphaned
 * ones.
 */
function slotsNotReturned(
  { unclaimed: orphaned }: GroupState,
  { isOfEarlier }: ActiveLease,
): number {
  return isOfEarlier ? orphaned.slots : 0;
}

/** Returns the leases here of the calls that made this one. A cooling lease waits for no call. */
function parentsOf({ leases }: GroupState, { parents }: Ticket): ActiveLease[] {
  return parents.flatMap((id) => {
    const parent = leases.get(id);
    return parent === undefined || parent.phase === 'cooling' ? [] : [parent];
  });
}

/**
 * Returns the lease whose slots the calls of a parent share, how many they may use once all others have ended, and how
 * many the others use now. null if the parent is another caller's, or if its member refused the call.
 */
function passageOf(
  state: GroupState,
  parent: ActiveLease,
  ticket: Ticket,
): { readonly leaseId: LeaseId; readonly slotsMax: number; readonly slotsOfOthers: number } | null {
  const isOthers = parent.holder.caller !== ticket.holder.caller;
  if (isOthers || mayNotGoTo(state, ticket, parent.member)) return null;
  const root = parent.nested === null ? parent : state.leases.get(passesOn(parent) ?? parent.id);
  if (root === undefined || root.nested !== null) {
    return { leaseId: parent.id, slotsMax: 0, slotsOfOthers: 0 };
  }
  let [slotsOfParents, slotsOfOthers] = [0, slotsNotReturned(state, root)];
  for (const { id, nested } of state.nestedIn.get(root.id) ?? []) {
    if (ticket.parents.includes(id)) slotsOfParents += nested?.slots ?? 0;
    else slotsOfOthers += nested?.slots ?? 0;
  }
  return { leaseId: root.id, slotsMax: root.slots - slotsOfParents, slotsOfOthers };
}

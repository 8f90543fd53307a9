import type { LeaseId } from './words/ids.ts';
import type { Ticket } from './words/ticket.ts';
import { mayNotGoTo } from './placing.ts';
import type { GroupState, ActiveLease } from './state.ts';

/**
 * Calls that are made for a call which holds slots, and pass on these: as many at once as it has, of the
 * same caller. What is made for one of them passes on the same slots, and one that has outlived the call
 * that it was made for lets nobody pass: a chain would have no end.
 */

/** Names the lease on whose slots this one passes, or null. */
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

/** Sums up the slots of leases that pass on another one. */
export function slotsPassing({ nestedIn }: GroupState, root: LeaseId): number {
  let slots = 0;
  for (const { nested } of nestedIn.get(root) ?? []) slots += nested?.slots ?? 0;
  return slots;
}

/** Whether a call would wait for one that waits for it. */
export function waitsForItself(state: GroupState, ticket: Ticket): boolean {
  const parents = parentsOf(state, ticket);
  if (state.settings.nested === 'reject') return parents.length > 0;
  const passages = parents.flatMap((parent) => passageOf(state, parent, ticket) ?? []);
  return passages.length > 0 && passages.every(({ slotsMax }) => ticket.slots > slotsMax);
}

/** The lease on whose slots a call may pass now, or null. */
export function findPassage(state: GroupState, ticket: Ticket): LeaseId | null {
  for (const parent of parentsOf(state, ticket)) {
    const passage = passageOf(state, parent, ticket);
    if (passage === null) continue;
    if (ticket.slots + passage.slotsOfOthers <= passage.slotsMax) return passage.leaseId;
  }
  return null;
}

/**
 * Slots that calls may take on a lease of an earlier instance, though nobody has heard of them yet: they would be
 * among the unclaimed.
 */
function unheardOf({ unclaimed: orphaned }: GroupState, { isOfEarlier }: ActiveLease): number {
  return isOfEarlier ? orphaned.slots : 0;
}

/** The leases here of the call that this one is made for. What cools down waits for nobody. */
function parentsOf({ leases }: GroupState, { parents }: Ticket): ActiveLease[] {
  return parents.flatMap((id) => {
    const parent = leases.get(id);
    return parent === undefined || parent.phase === 'cooling' ? [] : [parent];
  });
}

/**
 * Where the calls of a parent pass, how many slots they may take there once all others have ended, and
 * how many the others take now. Null: the parent is another caller's, or where it runs the call was refused.
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
  let [slotsOfParents, slotsOfOthers] = [0, unheardOf(state, root)];
  for (const { id, nested } of state.nestedIn.get(root.id) ?? []) {
    if (ticket.parents.includes(id)) slotsOfParents += nested?.slots ?? 0;
    else slotsOfOthers += nested?.slots ?? 0;
  }
  return { leaseId: root.id, slotsMax: root.slots - slotsOfParents, slotsOfOthers };
}

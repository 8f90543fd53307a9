import { after, earlier, IMPLICIT, later, type InstantMs, type MemberId } from './words/ids.ts';
import { COOLDOWN_MAX_MS, LEASE_TTL_MS, MOVE_SETTLE_MS } from './words/settings.ts';
import { noteHandedOut } from './parts/bound.ts';
import { addRates } from './parts/rates.ts';
import { addSpend } from './parts/spend.ts';
import { addCosts } from './parts/costs.ts';
import { rebaseControls, type Controls, type Ledger } from './member.ts';
import { addLease, endLostNesting, newLease } from './leases.ts';
import {
  memberFor,
  memberAt,
  type GroupState,
  type HandedLease,
  type ActiveLease,
  type HandedGroup,
} from './state.ts';
import { holdOrphaned } from './orphaned.ts';
import type { GroupEvent } from './events.ts';
import { confirmedControls } from './reports.ts';
import { restoreScopes } from './scopes.ts';

/**
 * The hand-over of an unverified pool to its own object: what the pool hands over, and how the object takes it over.
 */

function addHanded(state: GroupState, leases: readonly HandedLease[], now: InstantMs): void {
  for (const handed of leases) {
    if (state.leases.has(handed.id) || state.tombstones.has(handed.id)) continue;
    const lease = leaseFrom(state, handed, now);
    lease.member = memberFor(state, lease.member, lease.holder, now).id;
    addLease(state, lease, now);
    // Its holder has released it, so a late acquire call or resumption must not revive it.
    if (lease.phase === 'cooling') state.tombstones.add(lease.id, now);
    if (lease.phase === 'revoking') state.revoking.add(lease.id);
  }
  endLostNesting(state, now);
}

/** Creates a lease that was handed over. Its holder may be alive and gets one TTL to return. */
function leaseFrom(state: GroupState, handed: HandedLease, now: InstantMs): ActiveLease {
  const { coolingUntil, ...rest } = handed;
  const grantedAt = earlier(handed.grantedAt, now);
  // The clock that wrote it may have been ahead.
  const cooled = coolingUntil === null ? null : earlier(coolingUntil, after(now, COOLDOWN_MAX_MS));
  return {
    ...newLease(state, { ...rest, heirOf: [], waitsElsewhere: false }, grantedAt),
    phase: rest.phase,
    until: cooled ?? after(now, LEASE_TTL_MS),
    isOfEarlier: true,
    chargedMs: now - grantedAt,
  };
}

/** Returns everything that an instance hands over. It must decide nothing from then on. */
export function handedGroupOf(state: GroupState, now: InstantMs): HandedGroup {
  const {
    leases,
    controls,
    members,
    totals,
    upstreams,
    nextAttachment,
    unclaimed: orphaned,
  } = state;
  const split = [...members.values()].filter((member) => member.controls !== controls);
  const ofMembers = split.map(
    (member) => [member.id, confirmedControls(state, member.controls, now)] as const,
  );
  return {
    leases: [...leases.values()].map(handedOf),
    controls: confirmedControls(state, controls, now),
    ...(split.length > 0 && { members: Object.fromEntries(ofMembers) }),
    totals,
    upstreams,
    nextAttachment,
    ...(orphaned.slots > 0 && { unclaimed: orphaned.slots }),
  };
}

function handedOf(lease: ActiveLease): HandedLease {
  const { id, ticketId, holder, lane, named, slots, grantedAt, phase, reserved, nested } = lease;
  const coolingUntil = phase === 'cooling' ? lease.until : null;
  const of = { id, ticketId, holder, lane, member: named };
  const byId = lease.isById ? { isById: true } : {};
  return { ...of, slots, grantedAt, phase, coolingUntil, reserved, nested, ...byId };
}

/** Adds the leases that another instance granted, and its use of the limits. */
export function takeOver(
  state: GroupState,
  { handed, isNew, isRepeat, firstAttachment }: Extract<GroupEvent, { kind: 'take_over' }>,
  now: InstantMs,
): void {
  state.nextAttachment = Math.max(state.nextAttachment, firstAttachment, handed.nextAttachment);
  const heldBefore = heldByMember(state);
  addHanded(state, handed.leases, now);
  if (handed.unclaimed !== undefined && !isRepeat) {
    holdOrphaned(state, new Map([[IMPLICIT, handed.unclaimed]]), now);
    // They are held by id. Nothing else of an unverified pool outlives its process.
    state.bound.mayOutlive = true;
  }
  for (const [id, held] of heldByMember(state)) {
    noteHandedOut(state.bound, id, held - (heldBefore.get(id) ?? 0), now);
  }
  // Holders know their leases by attachment numbers of the other instance, which this one never issued.
  state.bound.since = 0;
  if (isNew) takeLessons(state, handed, now);
  else if (!isRepeat) addUse(state, handed, now);
  // Callers that waited there arrive here at once. No younger call may start before they do.
  state.grantsFrom = later(state.grantsFrom, after(now, MOVE_SETTLE_MS));
  state.dispersedAt = now;
}

function heldByMember({ members }: GroupState): ReadonlyMap<MemberId, number> {
  const held = [...members.values()].map(
    ({ id, slotsInUse, slotsNested }) => [id, slotsInUse + slotsNested] as const,
  );
  return new Map(held);
}

/** Adopts everything that the other instance has used and learned. */
function takeLessons(state: GroupState, handed: HandedGroup, now: InstantMs): void {
  for (const [{ controls, settings }, given] of ledgersWith(state, handed, now)) {
    Object.assign(controls, given);
    rebaseControls(controls, settings.rates, now);
  }
  for (const member of state.members.values()) restoreScopes(state, member);
  Object.assign(state.totals, handed.totals);
  for (const [id, there] of handed.upstreams) state.upstreams.set(id, there);
  state.isControlsDirty = true;
}

/**
 * Adds the other instance's use to that of this one, which serves several partitions. The lessons of this instance are
 * kept, because they are worth more.
 */
function addUse(state: GroupState, handed: HandedGroup, now: InstantMs): void {
  for (const [{ controls, settings }, given] of ledgersWith(state, handed, now)) {
    addRates(controls.rates, settings.rates, given.rates, now);
    addSpend(controls.spend, given.spend, now);
  }
  addCosts(state.controls.costs, handed.controls.costs, now);
  state.isControlsDirty = true;
}

/** Pairs the limits of this instance and its members with the other instance's use of each. */
function ledgersWith(
  state: GroupState,
  { controls, members = {} }: HandedGroup,
  now: InstantMs,
): [Pick<Ledger, 'controls' | 'settings'>, Controls][] {
  const { settings } = state;
  const own = { controls: state.controls, settings };
  // The cast is sound: the keys are ids of members.
  const named = Object.entries(members) as [MemberId, Controls][];
  return [
    [own, controls],
    ...named.map(([id, given]): [Pick<Ledger, 'controls' | 'settings'>, Controls] => [
      memberAt(state, id, now),
      given,
    ]),
  ];
}

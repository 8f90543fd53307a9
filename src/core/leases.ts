import {
  after,
  IMPLICIT,
  instant,
  type InstantMs,
  type LeaseId,
  type MemberId,
} from './words/ids.ts';
import type { LeaseOutcome } from './words/outcome.ts';
import { LEASE_TTL_MS } from './words/settings.ts';
import { LANES, type Holder } from './words/ticket.ts';
import { namesOf } from './words/scope.ts';
import type { Settlement } from './words/usage.ts';
import { agentAccount, charge, agentKeyOf, tenantAccount, weightOf } from './parts/accounts.ts';
import { demandAt, demandOf } from './parts/demand.ts';
import { noteFreed, noteHandedOut, noteLapsed, noteLost } from './parts/bound.ts';
import { observe } from './parts/histogram.ts';
import { resettle } from './parts/queue.ts';
import { atUpstream, cooldownMs } from './capacity.ts';
import { holdToChargeMs, observeHold } from './estimate.ts';
import type { Effect, GroupEvent } from './events.ts';
import { noteHeirHeard, notePassed } from './next-holders.ts';
import { countInAll } from './member.ts';
import { memberFor, memberOf, noteAffinity } from './members.ts';
import type { Limiter } from './limiter.ts';
import { enterScopes, speaksForAll } from './scopes.ts';
import { forgetNested, noteNested, passesOn, slotsPassing } from './nesting.ts';
import { isMeteredAt, reservationOf, settleLease } from './reservation.ts';
import { placeLease } from './serving.ts';
import { NEVER, type GroupState, type ActiveLease } from './state.ts';
import { noteEnd, noteUnused } from './stats.ts';
import { noteStart } from './reported-calls.ts';
import { noteTold, takeLent } from './prefetching.ts';
import {
  mayClaim,
  memberOfClaim,
  takeUnclaimed,
  takeUnplaced,
  unclaimedAt,
  type Claim,
} from './orphaned.ts';
import { noteCallable, noteEndThere } from './upstream-lag.ts';
import { noteEnded, noteGranted, noteSuccess } from './upstream-signals.ts';
import { checkNew, countViolation } from './violations.ts';

type NewLease = Pick<
  ActiveLease,
  | 'id'
  | 'ticketId'
  | 'holder'
  | 'lane'
  | 'member'
  | 'slots'
  | 'nested'
  | 'heirOf'
  | 'waitsElsewhere'
  | 'reserved'
> &
  Partial<Pick<ActiveLease, 'named' | 'isById'>>;

/**
 * Makes a lease, counts it, and charges its tenant with the hold to be expected. The caller has checked
 * that there is room.
 */
export function openLease(state: GroupState, wanted: NewLease, now: InstantMs): ActiveLease {
  const lease = newLease(state, wanted, now);
  const isPassed = lease.heirOf.length > 0;
  noteHandedOut(state.bound, lease.member, boundSlotsOf(lease), now, isPassed);
  addLease(state, lease, now);
  noteCallable(state, lease, now);
  chargeTo(state, lease, holdToChargeMs(state), now);
  state.lastGrantAt = now;
  return lease;
}

/**
 * Makes the lease of a holder whose lease the group does not know. It takes its slots out of the unclaimed
 * ones; those that are not among them count all the same, even above the limit: the call counts at the provider,
 * so nothing is granted until it has gone.
 */
export function claimLease(state: GroupState, claim: Claim, now: InstantMs): ActiveLease {
  const { leaseId: id, ticketId, holder, lane, slots } = claim;
  const heldMs = heldFor(claim);
  const isOurs = mayClaim(state, claim);
  const member = memberOfClaim(state, claim, now);
  const parent = isOurs ? claim.nested : null;
  const isNested = parent !== null && maySharePassage(state, parent);
  const { isById = false } = claim;
  const bare = { waitsElsewhere: false, reserved: isOurs ? claim.reserved : null, isById };
  const named = claim.member ?? IMPLICIT;
  const wanted = { id, ticketId, holder, lane, member: member.id, named, nested: parent, ...bare };
  if (!isOurs) {
    state.totals.resurrected += 1;
    return openLease(state, { ...wanted, heirOf: [], slots }, now);
  }
  const { heirOf: nextHolderOf } = claim;
  noteHeirHeard(state, member, claim, now);
  const marked = takeUnclaimed(state, member, slots);
  const unmarked = slots - marked;
  if (unmarked > takeUnplaced(state, unmarked)) state.totals.resurrected += 1;
  noteHandedOut(state.bound, member.id, unmarked, now);
  const since = instant(now - heldMs);
  const lease = newLease(
    state,
    { ...wanted, heirOf: nextHolderOf, slots: isNested ? 0 : slots },
    since,
  );
  lease.until = after(now, LEASE_TTL_MS);
  lease.isOfEarlier = true;
  // What it had had is forgotten with everybody else's.
  lease.chargedMs = heldMs;
  addLease(state, lease, now);
  if (parent !== null && !isNested) state.seekingParent.add(lease);
  noteAffinity(state, lease, now);
  for (const child of state.seekingParent) {
    if (child.nested?.in === id) nestAgain(state, child, child.nested, now);
  }
  return lease;
}

/**
 * Makes the lease of a call that runs on a lent slot: the slot is that of the lease from now on. Null: it is not lent.
 */
export function leaseOfLent(state: GroupState, claim: Claim, now: InstantMs): ActiveLease | null {
  const { leaseId: id, ticketId, holder, lane, lent } = claim;
  if (lent === undefined) return null;
  const heldMs = heldFor(claim);
  const loan = state.lending.loans.get(lent.loan);
  if (!takeLent(state, lent.loan, lent.slot)) return null;
  if (lent.told !== undefined) noteTold(state, loan, lent.told, now);
  const bare = { slots: 1, nested: null, heirOf: [], waitsElsewhere: false, reserved: null };
  const member = memberFor(state, IMPLICIT, holder, now).id;
  const lease = newLease(
    state,
    { id, ticketId, holder, lane, member, named: IMPLICIT, ...bare },
    instant(now - heldMs),
  );
  lease.until = after(now, LEASE_TTL_MS);
  addLease(state, lease, now);
  lease.slotsAtGrant = atUpstream(state, memberOf(state, lease));
  chargeTo(state, lease, heldMs, now);
  state.totals.granted += 1;
  observe(state.totals.wait, 0);
  lease.decision = noteStart(state, lease, lease.grantedAt);
  return lease;
}

/** Reads how long a holder has had its lease. Less than nothing says a holder whose clock was set back. */
function heldFor({ heldMs }: Claim): number {
  return Math.max(0, heldMs);
}

/** Whether a lease that is claimed may pass on its parent's slots again. Others may have taken them meanwhile. */
function maySharePassage(state: GroupState, to: NonNullable<ActiveLease['nested']>): boolean {
  const parent = state.leases.get(to.in);
  if (parent === undefined || parent.phase === 'cooling' || passesOn(parent) !== null) return false;
  return slotsPassing(state, to.in) + to.slots <= parent.slots;
}

/**
 * Makes the lease again whose answer left behind the last write of the instance before, for its caller who asks once
 * more: the answer was lost with that instance. Null: it is none of these.
 */
export function claimGranted(
  state: GroupState,
  { ticket, leaseId }: Pick<Extract<GroupEvent, { kind: 'acquire' }>, 'ticket' | 'leaseId'>,
  now: InstantMs,
): ActiveLease | null {
  const { bound, controls } = state;
  const member = bound.grantedBefore.get(leaseId);
  if (member === undefined) return null;
  const there = memberFor(state, member, ticket.holder, now);
  const unclaimed = unclaimedAt(state, there);
  // One that may have been let pass on its parent's slots is not known to hold any.
  if (ticket.parents.length > 0 || ticket.slots > unclaimed) return null;
  bound.grantedBefore.delete(leaseId);
  const { id: ticketId, holder, lane, slots, estimate, isById = false } = ticket;
  const demand = demandAt(demandOf(controls.factors, state.guessRates, ticket), there.id);
  const reserved = reservationOf(isMeteredAt(state, there.id), demand, {
    estimate,
    hasWaited: false,
  });
  const none = { attachment: null, hasLapsed: false, heldMs: 0, nested: null, heirOf: [] };
  const claim = { leaseId, ticketId, holder, lane, member, slots, reserved, isById, ...none };
  return claimLease(state, claim, now);
}

/** Lets a lease pass on its parent's slots again, which was claimed before that. */
function nestAgain(
  state: GroupState,
  lease: ActiveLease,
  to: NonNullable<ActiveLease['nested']>,
  now: InstantMs,
): void {
  if (!maySharePassage(state, to)) return;
  count(state, lease, -1, now);
  lease.slots = 0;
  count(state, lease, 1, now);
  noteNested(state, lease);
  state.seekingParent.delete(lease);
}

/** Slots that a lease counts for in the bound: one that is nested may outlive the lease that it passes on. */
export function boundSlotsOf({ slots, nested }: ActiveLease): number {
  return slots === 0 ? (nested?.slots ?? 0) : slots;
}

function newLease(state: GroupState, wanted: NewLease, now: InstantMs): ActiveLease {
  return {
    named: wanted.member,
    isById: false,
    ...wanted,
    grantedAt: now,
    callableAt: now,
    slotsAtGrant: 0,
    slotsCounted: 0,
    gapMs: Infinity,
    scopes: [],
    hasAnswer: false,
    phase: 'held',
    until: after(now, LEASE_TTL_MS),
    attachment: state.nextAttachment++,
    isRefused: false,
    isLagging: false,
    isOfEarlier: false,
    isLost: false,
    chargedMs: 0,
    decision: null,
  };
}

/** Puts a lease into the set, and its slots into the sums. */
export function addLease(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  checkNew(state, lease.id);
  if (lease.isById) state.bound.mayOutlive = true;
  state.leases.set(lease.id, lease);
  noteNested(state, lease);
  if (lease.phase === 'cooling') state.slotsCooling += lease.slots;
  count(state, lease, 1, now);
  enterScopes(memberOf(state, lease), lease);
  noteDue(state, lease.until);
}

/**
 * Puts the slot of a lease that an earlier instance granted back among the unclaimed ones, once it has ended: that
 * instance may have passed it on.
 */
export function keepForHeir(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  const freeAt = lease.phase === 'cooling' ? lease.until : now;
  if (lease.phase === 'cooling') removeLease(state, lease, now);
  state.bound.unclaimable.add(lease.id);
  notePassed(state, memberOf(state, lease), freeAt);
}

function removeLease(
  state: GroupState,
  lease: ActiveLease,
  now: InstantMs,
  hasLapsed = false,
): void {
  state.leases.delete(lease.id);
  state.revoking.delete(lease.id);
  state.seekingParent.delete(lease);
  state.coolingForKey.delete(lease);
  // One that cools down was told of when that began.
  if (hasLapsed) noteLapsed(state.bound, lease.id);
  else if (lease.phase !== 'cooling') {
    noteFreed(state.bound, lease.id, state.unclaimed.slots > 0);
  }
  if (lease.isLost) noteLost(state.bound);
  forgetNested(state, lease);
  if (lease.phase === 'cooling') state.slotsCooling -= lease.slots;
  count(state, lease, -1, now);
}

function count(state: GroupState, lease: ActiveLease, sign: 1 | -1, now: InstantMs): void {
  const slots = sign * lease.slots;
  const { tenant, agent } = accountsOf(state, lease, now);
  tenant.activeAt = now;
  agent.activeAt = now;
  countInAll(memberOf(state, lease), lease, sign);
  state.slotsInUse += slots;
  state.slotsNested += sign * (boundSlotsOf(lease) - lease.slots);
  state.slotsByLane[lease.lane] += slots;
  if (lease.waitsElsewhere) state.slotsWaitingElsewhere += slots;
  if (lease.isRefused) state.slotsRefused += slots;
  tenant.slots += slots;
  agent.slots += slots;
}

/** Confirms that all groups of its call have granted, and the call is on its way. */
export function confirmLease(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  if (!endWaitElsewhere(state, lease)) return;
  noteCallable(state, lease, now);
  noteGranted(memberOf(state, lease), lease, now);
}

/** Ends its wait for another group. Returns whether it did wait until now. */
function endWaitElsewhere(state: GroupState, lease: ActiveLease): boolean {
  if (!lease.waitsElsewhere) return false;
  lease.waitsElsewhere = false;
  state.slotsWaitingElsewhere -= lease.slots;
  for (const one of limitersOf(state, lease)) one.slotsWaitingElsewhere -= lease.slots;
  return true;
}

/**
 * Marks a lease whose call the upstream refused. It is known before the lease ends, and of a burst of
 * refusals the first ends come after the last report: until then all of them would seem to be in flight.
 */
export function markRefused(state: GroupState, lease: ActiveLease): void {
  if (lease.isRefused) return;
  lease.isRefused = true;
  state.slotsRefused += lease.slots;
  for (const one of limitersOf(state, lease)) one.slotsRefused += lease.slots;
}

/** Lists the limiters that count a lease: its member and its scopes there. */
function limitersOf(state: GroupState, lease: ActiveLease): readonly Limiter[] {
  return [memberOf(state, lease), ...lease.scopes.map(({ limiter }) => limiter)];
}

/** Brings the charge of a lease to `heldMs`, up or down. */
export function chargeTo(
  state: GroupState,
  lease: ActiveLease,
  heldMs: number,
  now: InstantMs,
): void {
  const { tenant, agent } = accountsOf(state, lease, now);
  const slotMs = lease.slots * (heldMs - lease.chargedMs);
  lease.chargedMs = heldMs;
  const weight = weightOf(state.settings, tenant.key);
  for (const lane of LANES) charge(tenant.shares[lane], slotMs, weight);
  charge(agent, slotMs, 1);
  resettle(state.queue, tenant);
}

/**
 * Notes the member that its holder names, by whose key its call runs. Another instance may have granted it there before
 * this one did anew.
 */
export function noteNamed(
  state: GroupState,
  lease: ActiveLease,
  named: MemberId,
  now: InstantMs,
): void {
  if (lease.named === named) return;
  lease.named = named;
  if (placeLease(state, lease, now)) {
    noteHandedOut(state.bound, lease.member, boundSlotsOf(lease), now);
  }
}

function accountsOf({ accounts }: GroupState, { holder }: ActiveLease, now: InstantMs) {
  const tenant = tenantAccount(accounts, holder.tenant);
  return { tenant, agent: agentAccount(accounts, tenant, agentKeyOf(holder), now) };
}

/**
 * Hands the lease to a new answer: from now on the earlier one's disposal changes nothing. The caller asked
 * for it, lives, and has one TTL from now.
 */
export function attach(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  lease.attachment = state.nextAttachment++;
  renewLease(lease, now);
}

/**
 * Renews a lease: its holder lives, and has one TTL from now. One that was taken away is not renewed: a holder
 * that ignores it loses the slot by its TTL.
 */
export function renewLease(lease: ActiveLease, now: InstantMs): void {
  if (lease.phase === 'held') lease.until = after(now, LEASE_TTL_MS);
}

/** Has a lease held by its id from now on, by a holder of that kind: its answer may be disposed of. */
export function holdById({ bound }: GroupState, lease: ActiveLease, { kind }: Holder): void {
  if (lease.isById) return;
  bound.mayOutlive = true;
  lease.isById = true;
  if (kind === undefined) return;
  lease.holder = { ...lease.holder, kind };
  const { decision } = lease;
  if (decision !== null) decision.ticket = { ...decision.ticket, holder: lease.holder };
}

/**
 * Extends all leases, and what is unclaimed, by time in which no holder could renew. A dead holder's lease gets just what
 * was lost, however often. What cools down did so meanwhile.
 */
export function extendByLostTime({ leases, unclaimed }: GroupState, lostMs: number): void {
  unclaimed.until = after(unclaimed.until, lostMs);
  for (const lease of leases.values()) {
    if (lease.phase !== 'cooling') lease.until = after(lease.until, lostMs);
  }
}

/**
 * Ends a lease for good. Its slots come back at once or after their cooldown.
 *
 * @param settlement `unused`: nothing was ever sent, whatever the outcome
 */
export function endLease(
  state: GroupState,
  lease: ActiveLease,
  outcome: LeaseOutcome,
  settlement: Settlement | 'unused' | null,
  now: InstantMs,
  effects: Effect[],
): void {
  if (lease.phase === 'cooling' || !state.leases.has(lease.id)) {
    return countViolation(state, 'settled_twice');
  }
  const isUnused = outcome === 'unused' || settlement === 'unused';
  if (isUnused) noteUnused(state, lease, now);
  else {
    noteEndThere(state, lease, now);
    state.lastEndAt = now;
  }
  const heldMs = now - lease.grantedAt;
  state.tombstones.add(lease.id, now);
  effects.push({ kind: 'ended', leaseId: lease.id });
  endNesting(state, lease.id, now);
  endWaitElsewhere(state, lease);
  chargeTo(state, lease, outcome === 'unused' ? 0 : heldMs, now);
  if (outcome === 'success' || outcome === 'cancelled') observeHold(state, heldMs);
  settleLease(state, lease, isUnused ? 'unused' : settlement, now);
  noteEnd(state, lease, outcome, now);
  if (outcome === 'success') noteSuccess(state, lease, now);
  // A caller that leaves says nothing of the upstream, whether its Worker lives to tell or not.
  noteEnded(state, lease, false, now);
  // A failed call may still run on its caller's own account, which takes no room from other callers.
  const isOfOwn = outcome === 'failed' && !speaksForAll(state, lease, now);
  const downMs = lease.slots === 0 || isOfOwn ? 0 : cooldownMs(state, lease, outcome);
  if (downMs > 0) {
    const member = memberOf(state, lease);
    countInAll(member, lease, -1);
    if (lease.isRefused) state.slotsRefused -= lease.slots;
    lease.isRefused = false;
    lease.phase = 'cooling';
    countInAll(member, lease, 1);
    state.slotsCooling += lease.slots;
    // It is settled: after a reset nobody may settle it again, nor take it up.
    noteFreed(state.bound, lease.id, state.unclaimed.slots > 0);
    lease.until = after(now, downMs);
    noteDue(state, lease.until);
    state.revoking.delete(lease.id);
    state.seekingParent.delete(lease);
    const isOfKey = outcome === 'failed' && namesOf(lease.holder).credential !== null;
    if (isOfKey) state.coolingForKey.add(lease);
  } else {
    removeLease(state, lease, now);
  }
}

/** Frees the slots that failures with one caller's own key keep in use, when the first call with another key comes. */
export function freeForOtherKey(state: GroupState, holder: Holder, now: InstantMs): void {
  const { credential } = namesOf(holder);
  for (const lease of state.coolingForKey) {
    if (namesOf(lease.holder).credential !== credential) removeLease(state, lease, now);
  }
}

/** Ends the passage on a lease that is held no more: what goes on counts by itself from now on. */
function endNesting(state: GroupState, parent: LeaseId, now: InstantMs): void {
  for (const lease of state.nestedIn.get(parent) ?? []) {
    const slots = lease.nested?.slots ?? 0;
    forgetNested(state, lease);
    count(state, lease, -1, now);
    lease.slots = slots;
    // What it held until now cost nothing, so nothing of that comes back at its end.
    lease.chargedMs = now - lease.grantedAt;
    count(state, lease, 1, now);
  }
}

/** Ends the passage on leases that are not here. */
export function endLostNesting(state: GroupState, now: InstantMs): void {
  for (const parent of state.nestedIn.keys()) {
    const isThere = (state.leases.get(parent)?.phase ?? 'cooling') !== 'cooling';
    if (!isThere) endNesting(state, parent, now);
  }
}

/** Ends every lease whose time is over: lapsed ones, and cooldowns. */
export function expireLeases(state: GroupState, now: InstantMs, effects: Effect[]): void {
  if (now < state.leasesDueAt) return;
  state.leasesDueAt = NEVER;
  for (const lease of state.leases.values()) {
    if (now < lease.until) {
      noteDue(state, lease.until);
      continue;
    }
    const { phase } = lease;
    if (phase !== 'cooling') {
      lease.isLost = true;
      chargeTo(state, lease, now - lease.grantedAt, now);
      settleLease(state, lease, null, now);
      noteEnded(state, lease, true, now);
      endNesting(state, lease.id, now);
    }
    removeLease(state, lease, now, phase === 'held');
    if (phase === 'cooling') continue;
    noteEnd(state, lease, 'expired', now);
    // A lapsed lease leaves no tombstone: a holder that was only out of reach may still resume it.
    // One that an operator took away does, or its holder would come back.
    if (phase === 'revoking') state.tombstones.add(lease.id, now);
    effects.push({ kind: 'ended', leaseId: lease.id });
  }
}

/** Lowers the instant of the next expiry to `at`. */
function noteDue(state: GroupState, at: InstantMs): void {
  state.leasesDueAt = instant(Math.min(state.leasesDueAt, at));
}

import { after, instant, type InstantMs, type LeaseId, type MemberId } from './words/ids.ts';
import type { LeaseOutcome } from './words/outcome.ts';
import { LEASE_TTL_MS } from './words/settings.ts';
import { LANES, type Holder, type Settlement } from './words/ticket.ts';
import { namesOf } from './words/signal.ts';
import { agentAccount, charge, agentKeyOf, tenantAccount, weightOf } from './parts/accounts.ts';
import { noteFreed, noteHandedOut, noteLapsed, noteLost } from './parts/bound.ts';
import { resettle } from './parts/queue.ts';
import { cooldownMs } from './capacity.ts';
import { holdToChargeMs, observeHold } from './estimate.ts';
import type { Effect } from './events.ts';
import { noteOrphanedAgain } from './next-holders.ts';
import { countInAll, type Limiter } from './member.ts';
import { memberOf, NEVER, type GroupState, type ActiveLease } from './state.ts';
import { enterScopes, speaksForAll } from './scopes.ts';
import { forgetNested, noteNested } from './nesting.ts';
import { settleLease } from './reservation.ts';
import { placeLease } from './serving.ts';
import { noteEnd, noteUnused, checkNew, countViolation } from './stats.ts';
import { noteCallable, noteEndThere } from './upstream-lag.ts';
import { noteEnded, noteGranted, noteSuccess } from './upstream-signals.ts';

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
 * Creates a lease, counts it, and charges its tenant with the expected hold. The caller has checked that there is room.
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
 * Slots that a lease counts for in the bound. A nested lease may outlive its parent, so it counts with its own number.
 */
export function boundSlotsOf({ slots, nested }: ActiveLease): number {
  return slots === 0 ? (nested?.slots ?? 0) : slots;
}

/** Creates a lease that is granted at `now`, and does not count it yet. */
export function newLease(state: GroupState, wanted: NewLease, now: InstantMs): ActiveLease {
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

export function addLease(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  checkNew(state, lease.id);
  if (lease.isById) state.bound.mayOutlive = true;
  state.leases.set(lease.id, lease);
  noteNested(state, lease);
  if (lease.phase === 'cooling') state.slotsCooling += lease.slots;
  countLease(state, lease, 1, now);
  enterScopes(memberOf(state, lease), lease);
  noteDue(state, lease.until);
}

/**
 * Marks the slot of an ended lease as orphaned again. The earlier instance that granted the lease may have handed the
 * slot over.
 */
export function orphanEnded(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  const freeAt = lease.phase === 'cooling' ? lease.until : now;
  if (lease.phase === 'cooling') removeLease(state, lease, now);
  state.bound.unclaimable.add(lease.id);
  noteOrphanedAgain(state, memberOf(state, lease), freeAt);
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
  // For a cooling lease this was noted when its cooldown began.
  if (hasLapsed) noteLapsed(state.bound, lease.id);
  else if (lease.phase !== 'cooling') {
    noteFreed(state.bound, lease.id, state.unclaimed.slots > 0);
  }
  if (lease.isLost) noteLost(state.bound);
  forgetNested(state, lease);
  if (lease.phase === 'cooling') state.slotsCooling -= lease.slots;
  countLease(state, lease, -1, now);
}

export function countLease(
  state: GroupState,
  lease: ActiveLease,
  sign: 1 | -1,
  now: InstantMs,
): void {
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

/** Marks the call as granted in all its groups and sent. */
export function confirmLease(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  if (!endWaitElsewhere(state, lease)) return;
  noteCallable(state, lease, now);
  noteGranted(memberOf(state, lease), lease, now);
}

/** Ends the wait for another group. Returns false if the lease did not wait. */
function endWaitElsewhere(state: GroupState, lease: ActiveLease): boolean {
  if (!lease.waitsElsewhere) return false;
  lease.waitsElsewhere = false;
  state.slotsWaitingElsewhere -= lease.slots;
  for (const one of limitersOf(state, lease)) one.slotsWaitingElsewhere -= lease.slots;
  return true;
}

/**
 * Marks a lease whose call the upstream refused. In a burst of refusals the first release comes after the last report.
 * Without the mark, all these calls would seem to be in flight until then.
 */
export function markRefused(state: GroupState, lease: ActiveLease): void {
  if (lease.isRefused) return;
  lease.isRefused = true;
  state.slotsRefused += lease.slots;
  for (const one of limitersOf(state, lease)) one.slotsRefused += lease.slots;
}

function limitersOf(state: GroupState, lease: ActiveLease): readonly Limiter[] {
  return [memberOf(state, lease), ...lease.scopes.map(({ limiter }) => limiter)];
}

/** Sets the charge of a lease to `heldMs`, up or down. */
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
 * Notes the member that its holder names, whose key the call uses. An earlier instance may have placed it there before
 * this one placed it elsewhere.
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
 * Attaches the lease to a new answer. The disposal of earlier answers changes nothing from now on. The caller is alive,
 * so the lease is renewed.
 */
export function attach(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  lease.attachment = state.nextAttachment++;
  renewLease(lease, now);
}

/**
 * Renews a lease for one TTL. A revoked lease is not renewed, so a holder that ignores the revocation loses its slot by
 * the TTL.
 */
export function renewLease(lease: ActiveLease, now: InstantMs): void {
  if (lease.phase === 'held') lease.until = after(now, LEASE_TTL_MS);
}

/** Marks a lease as held by id, by a holder of that kind. Its answer may be disposed of from now on. */
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
 * Extends all leases and the orphaned slots by time in which no holder could renew. The lease of a dead holder gains
 * only the lost time. Cooldowns continue during that time.
 */
export function extendByLostTime({ leases, unclaimed }: GroupState, lostMs: number): void {
  unclaimed.until = after(unclaimed.until, lostMs);
  for (const lease of leases.values()) {
    if (lease.phase !== 'cooling') lease.until = after(lease.until, lostMs);
  }
}

/**
 * Ends a lease. Its slots are free at once or after their cooldown.
 *
 * @param settlement `unused` if the call was never sent, whatever the outcome
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
  // A caller that leaves reports nothing about the upstream, whether its Worker is alive or not.
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
    // The lease is settled. After a reset it must not be settled or resumed again.
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

/** Detaches nested leases from a parent that has ended. Each counts with its own slots from now on. */
function endNesting(state: GroupState, parent: LeaseId, now: InstantMs): void {
  for (const lease of state.nestedIn.get(parent) ?? []) {
    const slots = lease.nested?.slots ?? 0;
    forgetNested(state, lease);
    countLease(state, lease, -1, now);
    lease.slots = slots;
    // Time on the parent's slots was not charged, so nothing of it is refunded at the end.
    lease.chargedMs = now - lease.grantedAt;
    countLease(state, lease, 1, now);
  }
}

/** Detaches nested leases from parents that are not known here. */
export function endLostNesting(state: GroupState, now: InstantMs): void {
  for (const parent of state.nestedIn.keys()) {
    const isThere = (state.leases.get(parent)?.phase ?? 'cooling') !== 'cooling';
    if (!isThere) endNesting(state, parent, now);
  }
}

/** Ends leases without a renewal, and cooldowns that are due. */
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
    // An expired lease leaves no tombstone, because a holder that was only unreachable may still resume it. A revoked
    // lease leaves one, or its holder would return.
    if (phase === 'revoking') state.tombstones.add(lease.id, now);
    effects.push({ kind: 'ended', leaseId: lease.id });
  }
}

function noteDue(state: GroupState, at: InstantMs): void {
  state.leasesDueAt = instant(Math.min(state.leasesDueAt, at));
}

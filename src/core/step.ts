import {
  after,
  IMPLICIT,
  instant,
  memberId,
  ticketOf,
  type InstantMs,
  type LeaseId,
} from './words/ids.ts';
import { MOVE_SETTLE_MS, settleMs, type GroupSettings } from './words/settings.ts';
import { levelAgents } from './parts/accounts.ts';
import {
  emptyDueAt,
  hasWaiterCountChanged,
  isRunningOut,
  lostAt,
  noteHeld,
  noteOtherMembers,
} from './parts/bound.ts';
import { closedBreaker } from './parts/breaker.ts';
import { emptyCeiling } from './parts/ceiling.ts';
import { correctionsOf, correctSpend, undoCorrection } from './parts/spend.ts';
import { beginEvent } from './parts/decision-log.ts';
import { endHoldBack, heldBackUntil } from './parts/evidence.ts';
import {
  noteVacated,
  areNextHoldersDue,
  freePassed,
  nextHoldersDueAt,
  mayHaveNextHolder,
  mayHavePassed,
  passedDueAt,
  strikeNextHolders,
} from './next-holders.ts';
import { noLag } from './parts/lag.ts';
import { noOutage, emptyPause } from './parts/pause.ts';
import { endPassedOver, passOver, queueLength } from './parts/queue.ts';
import { refundDebts } from './parts/rates.ts';
import { forgetRepeatRefusals } from './parts/affinity.ts';
import { noScopes } from './parts/lessons.ts';
import { blockBy, memberBlockOf, scopesDueAt } from './capacity.ts';
import type { Controls, Limiter } from './member.ts';
import { joinQueue, replace } from './enter.ts';
import type { Effect, GroupEvent } from './events.ts';
import { grantOf, pump } from './grant.ts';
import {
  attach,
  chargeTo,
  confirmLease,
  endLease,
  expireLeases,
  extendByLostTime,
  holdById,
  orphanEnded,
  renewLease,
  markRefused,
  noteNamed,
} from './leases.ts';
import { claimLease, leaseOnPrefetched } from './claims.ts';
import { leave, rejected, askForNames, expireWaiters } from './waiting.ts';
import {
  expirePrefetched,
  extendPrefetched,
  freePrefetched,
  keepPrefetch,
  leavePrefetch,
  prefetchedDueAt,
  noteTold,
  recallPrefetched,
} from './prefetching.ts';
import { allLedgers, isSplit, type GroupState, type ActiveLease } from './state.ts';
import { waitsForItself } from './nesting.ts';
import { takeOver } from './hand-over.ts';
import { forgetScopes } from './scopes.ts';
import { endReports, forgetReports, reportsDueAt } from './reports.ts';
import { rejectionOfStopped, rejectionOfTooLarge } from './rejections.ts';
import { renameMembers, applyReactions, serveMembers } from './serving.ts';
import { countInFlight } from './reservation.ts';
import { noteAnswer, slotsHeld } from './stats.ts';
import {
  expireOrphaned,
  hasEnded,
  mayClaim,
  settleOrphaned,
  orphanedFor,
  type Claim,
} from './orphaned.ts';
import { applySignal } from './upstream-signals.ts';

/**
 * Advances the group by one event and returns the effects that the shell must carry out.
 *
 * It is deterministic: time comes with the event, ids are generated outside, and it reads nothing else. It changes the
 * state in place. Every event first ends what is due by `now`, then does its own work, then grants. So no order of
 * events leaves a slot free while a waiter could use it.
 */
export function step(state: GroupState, event: GroupEvent, now: InstantMs): Effect[] {
  const effects: Effect[] = [];
  beginEvent(state.decisions);
  for (const { controls } of limitersOf(state)) endHoldBack(controls.ceiling.evidence, now);
  endReports(state, now);
  const stops = stopsOf(state, now);
  if (event.kind === 'held_up') {
    extendByLostTime(state, event.lostMs);
    extendPrefetched(state, event.lostMs);
  }
  expireOrphaned(state, now);
  freePassed(state, now);
  settleOrphaned(state, now);
  expirePrefetched(state, now);
  expireLeases(state, now, effects);
  expireWaiters(state, now, effects);
  apply(state, event, now, effects);
  freePassed(state, now);
  settleOrphaned(state, now);
  // A reconfiguration that enables or disables members changes where a call may go.
  const areOthers = event.kind === 'reconfigure' && isSplit(state);
  const stopsNow = stopsOf(state, now);
  if (areOthers || hasLonger(stopsNow, stops)) dropStopped(state, now, effects);
  grantAndDrop(state, stopsNow, now, effects);
  recallPrefetched(state, now, effects);
  noteHeld(state.bound, slotsHeld(state), now);
  noteWrite(state, now, effects);
  return effects;
}

/** Requests the writes that no answer waits for. */
function noteWrite(state: GroupState, now: InstantMs, effects: Effect[]): void {
  const { bound, isControlsDirty } = state;
  if (!bound.isStored) return;
  const isEmptyDue = now >= emptyDueAt(bound);
  if (isEmptyDue) bound.isEmptyNoted = true;
  const areNextHoldersToCome = areNextHoldersDue(state, now);
  if (areNextHoldersToCome) bound.heirsNotedAt = bound.confirmed?.seq ?? 0;
  const isAhead = isEmptyDue || isRunningOut(bound, now) || areNextHoldersToCome;
  const isSettling = now < state.grantsFrom;
  const isSoon =
    isControlsDirty ||
    hasWaiterCountChanged(bound, isSettling ? bound.waiters : queueLength(state.queue));
  if (isAhead || isSoon) effects.push({ kind: 'write', isAhead });
}

function limitersOf({ serving }: GroupState): readonly Limiter[] {
  return serving.flatMap((member) => [member, ...member.scopes.values()]);
}

/** The end of the current stop of each serving member and its scopes. 0 if it is not stopped. */
type Stops = ReadonlyMap<Limiter, number>;

function stopsOf({ serving }: GroupState, now: InstantMs): Stops {
  const stops = new Map<Limiter, number>();
  for (const member of serving) {
    stops.set(member, memberBlockOf(member, now)?.until ?? 0);
    for (const scope of member.scopes.values()) {
      stops.set(scope, blockBy(scope.controls, now)?.until ?? 0);
    }
  }
  return stops;
}

/** Whether a member was added or removed, or some calls are stopped for longer than before. */
function hasLonger(stops: Stops, before: Stops): boolean {
  for (const [limiter, until] of stops) {
    const was = before.get(limiter);
    if (until > (was ?? 0) || (was === undefined && limiter.id !== null)) return true;
  }
  return [...before.keys()].some((limiter) => limiter.id !== null && !stops.has(limiter));
}

/** Grants slots. If a grant probes a pause, calls that cannot wait for the end of the pause are rejected. */
function grantAndDrop(state: GroupState, before: Stops, now: InstantMs, effects: Effect[]): void {
  const count = effects.length;
  pump(state, now, effects);
  if (effects.length === count || queueLength(state.queue) === 0) return;
  const stops = stopsOf(state, now);
  if (!hasLonger(stops, before)) return;
  dropStopped(state, now, effects);
  grantAndDrop(state, stops, now, effects);
}

/** Rejects waiters whose deadline comes before the end of the current stop. */
function dropStopped(state: GroupState, now: InstantMs, effects: Effect[]): void {
  if (state.settings.isDryRun) return;
  for (const waiter of state.queue.byTicket.values()) {
    const stopped = rejectionOfStopped(state, waiter, now);
    if (stopped !== null) leave(state, waiter, rejected(stopped), now, effects);
  }
}

/**
 * Returns when the next event is due at the latest, a `tick` if there is no other. Infinity means never. An idle group
 * needs no timer, because an object is billed while its timer is set.
 */
export function nextWakeAt(state: GroupState, now: InstantMs): InstantMs {
  const { bound, unclaimed: orphaned } = state;
  const ended = state.leases.size > 0 ? state.leasesDueAt : Infinity;
  const lapsed = orphaned.slots > 0 ? orphaned.until : Infinity;
  const slotsDue = Math.min(prefetchedDueAt(state), passedDueAt(state));
  const leases = Math.min(ended, lapsed, slotsDue, emptyDueAt(bound), lostAt(bound));
  if (queueLength(state.queue) === 0) return instant(leases);
  const settled = state.grantsFrom > now ? state.grantsFrom : Infinity;
  const holdBacks = limitersOf(state).map(({ controls }) =>
    heldBackUntil(controls.ceiling.evidence),
  );
  const heldBack = Math.min(...holdBacks.map((at) => at ?? Infinity));
  const held = Math.min(state.heldOutUntil, scopesDueAt(state, now));
  const room = Math.min(state.roomDueAt, state.overtakingDueAt, held);
  const nextHolders = nextHoldersDueAt(state, now);
  const reported = reportsDueAt(state);
  const passed = endPassedOver(state.passedOver, now);
  return instant(
    Math.min(leases, state.waitersDueAt, settled, room, heldBack, nextHolders, reported, passed),
  );
}

function apply(state: GroupState, event: GroupEvent, now: InstantMs, effects: Effect[]): void {
  switch (event.kind) {
    case 'acquire':
      return joinQueue(state, event, now, effects);
    case 'renew':
      return renew(state, event, now);
    case 'confirm':
      return confirm(state, event, now);
    case 'report':
      return report(state, event, now, effects);
    case 'release':
      return release(state, event, now, effects);
    case 'pass_over':
      return passOver(state.passedOver, event.pool, event.forMs, now);
    case 'detach':
      return detach(state, event, now, effects);
    case 'cancel':
      return cancel(state, event, now, effects);
    case 'resume':
      return resume(state, event, now, effects);
    case 'keep_loan':
      return keepPrefetch(state, event, now);
    case 'leave_loan':
      return leavePrefetch(state, event, now);
    case 'give_back':
      return returnPrefetched(state, event, now, effects);
    case 'take_over':
      return takeOver(state, event, now);
    case 'revoke':
      return revoke(state, event, effects);
    case 'reconfigure':
      return reconfigure(state, event, now, effects);
    case 'promote':
      return promote(state, event);
    case 'correct_spend':
      return correct(state, event, now);
    case 'undo_correction':
      allLedgers(state).some(({ controls }) => undoCorrection(controls.spend, event.id, now));
      return noteCorrected(state);
    case 'relearn':
      return relearn(state, now);
    case 'bring_back':
      return bringBack(state, event, now);
    case 'move':
      return move(state, now, effects);
    case 'held_up':
    case 'tick':
      return;
  }
}

type StepEventOf<Kind extends GroupEvent['kind']> = Extract<GroupEvent, { kind: Kind }>;

function renew(state: GroupState, event: StepEventOf<'renew'>, now: InstantMs) {
  const lease = state.leases.get(event.leaseId);
  if (lease === undefined) return;
  renewLease(lease, now);
  if (event.claim?.isById === true && lease.phase === 'held') {
    holdById(state, lease, event.claim.holder);
  }
  // Without this charge, long streams would count as only one mean hold in the scheduling order.
  const heldMs = now - lease.grantedAt;
  if (lease.phase === 'held' && heldMs > lease.chargedMs) chargeTo(state, lease, heldMs, now);
}

function confirm(state: GroupState, event: StepEventOf<'confirm'>, now: InstantMs) {
  const lease = state.leases.get(event.leaseId);
  if (lease !== undefined && lease.phase !== 'cooling') confirmLease(state, lease, now);
}

function report(
  state: GroupState,
  event: StepEventOf<'report'>,
  now: InstantMs,
  effects: Effect[],
) {
  const lease =
    state.leases.get(event.leaseId) ??
    prefetchedLeaseOf(state, event.claim, now, effects) ??
    claimOf(state, event, now);
  if (lease === null || lease.phase === 'cooling') return;
  if (event.signal.kind !== 'served') {
    // The call was sent, even if the message that confirms it was lost.
    confirmLease(state, lease, now);
    markRefused(state, lease);
  }
  applySignal(state, lease, event.signal, event.isRepeat, now);
  askForNames(state, now, effects);
}

function release(
  state: GroupState,
  event: StepEventOf<'release'>,
  now: InstantMs,
  effects: Effect[],
) {
  const lease = state.leases.get(event.leaseId);
  if (lease === undefined) {
    const waiter = state.queue.byTicket.get(ticketOf(event.leaseId));
    if (waiter?.leaseId === event.leaseId) leave(state, waiter, { kind: 'gone' }, now, effects);
    const claimed =
      prefetchedLeaseOf(state, event.claim, now, effects) ?? claimOf(state, event, now);
    if (claimed === null) {
      state.tombstones.add(event.leaseId, now);
      return;
    }
    noteAnswer(state, claimed, event);
    const mayBePassed = mayHavePassed(claimed);
    endLease(state, claimed, event.outcome, event.settlement, now, effects);
    if (mayBePassed && state.bound.heirsBefore.size > 0) orphanEnded(state, claimed, now);
    return;
  }
  if (lease.phase === 'cooling') return;
  noteAnswer(state, lease, event);
  const isVacant = event.isSole === true && mayHaveNextHolder(state, lease);
  endLease(state, lease, event.outcome, event.settlement, now, effects);
  if (isVacant && !state.leases.has(lease.id)) noteVacated(state.bound, lease);
}

/**
 * Returns the lease that a holder names, if its slots are among the orphaned ones. null if they are not: the lease may
 * have ended and handed its slot over.
 */
function claimOf(
  state: GroupState,
  { leaseId, claim }: { readonly leaseId: LeaseId; readonly claim?: Claim },
  now: InstantMs,
): ActiveLease | null {
  if (claim === undefined || claim.slots > orphanedFor(state, claim, now)) return null;
  if (hasEnded(state, leaseId, claim.ticketId) || !mayClaim(state, claim)) return null;
  return claimLease(state, claim, now);
}

/**
 * Returns the lease of a call that runs on a prefetched slot, according to its holder. null if the slot is not
 * prefetched here or the lease has ended.
 */
function prefetchedLeaseOf(
  state: GroupState,
  claim: Claim | undefined,
  now: InstantMs,
  effects: Effect[],
): ActiveLease | null {
  if (claim?.lent === undefined || hasEnded(state, claim.leaseId, claim.ticketId)) return null;
  const lease = leaseOnPrefetched(state, claim, now);
  if (lease === null) return null;
  // Nested calls may arrive before the first message about their parent on a prefetched slot.
  for (const waiter of state.queue.nested) {
    if (!waitsForItself(state, waiter.ticket)) continue;
    leave(state, waiter, rejected({ reason: 'nested', retryAfterMs: null }), now, effects);
  }
  return lease;
}

/** Frees prefetched slots. Slots of an earlier instance are reclaimed and ended. */
function returnPrefetched(
  state: GroupState,
  event: StepEventOf<'give_back'>,
  now: InstantMs,
  effects: Effect[],
) {
  const { loanId, claims, told: keeperReport } = event;
  noteTold(state, state.lending.loans.get(loanId), keeperReport, now);
  for (const claim of claims) {
    const { leaseId } = claim;
    if (freePrefetched(state, loanId, leaseId, now)) continue;
    const claimed = claimOf(state, { leaseId, claim }, now);
    if (claimed === null) state.tombstones.add(leaseId, now);
    else endLease(state, claimed, 'unused', 'unused', now, effects);
  }
}

function detach(
  state: GroupState,
  event: StepEventOf<'detach'>,
  now: InstantMs,
  effects: Effect[],
) {
  const lease = state.leases.get(event.leaseId);
  if (lease === undefined || lease.phase === 'cooling') return;
  if (lease.isById || lease.attachment !== event.attachment) return;
  lease.isLost = true;
  endLease(state, lease, 'cancelled', null, now, effects);
}

function cancel(
  state: GroupState,
  event: StepEventOf<'cancel'>,
  now: InstantMs,
  effects: Effect[],
) {
  const waiter = state.queue.byTicket.get(event.ticketId);
  if (waiter !== undefined) leave(state, waiter, { kind: 'gone' }, now, effects);
  for (const lease of state.leases.values()) {
    if (lease.ticketId !== event.ticketId || lease.phase === 'cooling') continue;
    // Its caller never received it.
    endLease(state, lease, 'cancelled', 'unused', now, effects);
  }
  strikeNextHolders(state, event.ticketId, now);
  // An acquire call in transit must not revive the ticket.
  state.tombstones.add(event.ticketId, now);
}

function resume(
  state: GroupState,
  event: StepEventOf<'resume'>,
  now: InstantMs,
  effects: Effect[],
) {
  const { leaseId, ticketId, attachment } = event.claim;
  let lease = state.leases.get(leaseId);
  // A lease that an operator revoked is not resumed. The answer would let its holder continue for another TTL.
  if (hasEnded(state, leaseId, ticketId) || lease?.phase === 'revoking') {
    effects.push({ kind: 'gone', ticketId });
    return;
  }
  // The clock of an unstored earlier instance may have been ahead, and its attachment numbers with it.
  state.nextAttachment = Math.max(state.nextAttachment, (attachment ?? 0) + 1);
  const waiter = state.queue.byTicket.get(ticketId);
  if (waiter !== undefined) leave(state, waiter, { kind: 'left' }, now, effects);
  lease ??= prefetchedLeaseOf(state, event.claim, now, effects) ?? undefined;
  if (lease === undefined) {
    lease = resumeUnknown(state, event.claim, now) ?? undefined;
  } else {
    noteNamed(state, lease, event.claim.member ?? IMPLICIT, now);
    attach(state, lease, now);
  }
  effects.push(lease === undefined ? { kind: 'gone', ticketId } : grantOf(state, lease, now));
}

/** Returns the lease of a holder that this instance does not know. null if it may not be resumed. */
function resumeUnknown(state: GroupState, claim: Claim, now: InstantMs): ActiveLease | null {
  // Its holder knows when the lease expires and does not continue beyond that, so it never counts above the limit.
  if (claim.isById === true) return claimOf(state, { leaseId: claim.leaseId, claim }, now);
  const lease = claimLease(state, claim, now);
  // If an earlier instance stored nothing, other holders may follow the first one that returns.
  if (!state.bound.isStored) {
    state.grantsFrom = after(now, settleMs(queueLength(state.queue), slotsHeld(state)));
  }
  return lease;
}

function revoke(state: GroupState, event: StepEventOf<'revoke'>, effects: Effect[]) {
  const lease = state.leases.get(event.leaseId);
  if (lease?.phase !== 'held') return;
  lease.phase = 'revoking';
  state.revoking.add(lease.id);
  effects.push({ kind: 'revoked', leaseId: lease.id });
}

function reconfigure(
  state: GroupState,
  event: StepEventOf<'reconfigure'>,
  now: InstantMs,
  effects: Effect[],
) {
  const { settings } = event;
  if (settings.byAgent && !state.settings.byAgent) levelAgents(state.accounts);
  // Calls in flight count towards a budget that was added after their reservation was written.
  const isReserved = state.controls.spend.reservedUsd > 0;
  if (isReserved && budgetsOf(settings) !== budgetsOf(state.settings)) state.isControlsDirty = true;
  renameMembers(state, settings.members, now);
  countInFlightAnew(state, settings, now);
  const hasEndedDryRun = state.settings.isDryRun && !settings.isDryRun;
  if (settings.isDraining && !state.settings.isDraining) {
    // An idle group has no calls that may return, so the first call that reports the new configuration is a new one.
    const isInUse = state.slotsInUse + state.leases.size + queueLength(state.queue) > 0;
    state.drainsFrom = isInUse ? now : instant(0);
  }
  const areOthers = namesOf(settings) !== namesOf(state.settings);
  state.settings = settings;
  serveMembers(state, now);
  applyReactions(state, now);
  if (areOthers) noteOtherMembers(state.bound);
  if (hasEndedDryRun) {
    for (const ledger of allLedgers(state)) {
      refundDebts(ledger.controls.rates, ledger.settings.rates, now);
    }
    state.isControlsDirty = true;
  }
  if (settings.isDryRun) return;
  for (const waiter of state.queue.byTicket.values()) {
    const tooLarge = rejectionOfTooLarge(state, waiter.ticket);
    if (tooLarge !== null) leave(state, waiter, rejected(tooLarge), now, effects);
  }
}

/** Charges calls in flight to limits that are new, at the group and at each member. */
function countInFlightAnew(state: GroupState, settings: GroupSettings, now: InstantMs): void {
  const { controls, settings: before } = state;
  countInFlight(state, { controls, settings: before }, settings.rates, () => true, now);
  for (const { id, rates } of settings.members) {
    const member = state.members.get(id);
    if (member === undefined || member.controls === controls) continue;
    countInFlight(state, member, rates, (lease) => lease.member === id, now);
  }
}

function budgetsOf({ budgets, members }: GroupSettings): string {
  return JSON.stringify([budgets, members.map((member) => member.budgets)]);
}

function namesOf({ members }: GroupSettings): string {
  return JSON.stringify(members.map(({ id }) => id).toSorted());
}

function promote(state: GroupState, event: StepEventOf<'promote'>) {
  const waiter = state.queue.byTicket.get(event.ticketId);
  if (waiter === undefined) return;
  replace(state, waiter, event.lane ?? waiter.lane, event.toFront || waiter.isPromoted);
}

/** Forgets everything learned about the upstream. Use of the configured limits is kept. */
function relearn(state: GroupState, now: InstantMs) {
  forgetRepeatRefusals(state.repeatRefusals);
  for (const member of state.members.values()) {
    forgetReports(member);
    forgetScopes(state, member);
    forgetLessons(member.controls, now);
  }
  // After a reset, no call counts at the place used before the group had members. Its lessons are kept.
  if (!state.members.has(IMPLICIT)) {
    forgetLessons(state.controls, now);
    Object.assign(state.controls.scopes, noScopes());
  }
  state.isControlsDirty = true;
}

function forgetLessons(controls: Controls, now: InstantMs): void {
  Object.assign(controls.ceiling, emptyCeiling(now));
  Object.assign(controls.pause, emptyPause());
  Object.assign(controls.breaker, closedBreaker());
  Object.assign(controls.lag, noLag());
  Object.assign(controls.outage, noOutage(now));
}

/** Corrects a budget, once for each id. An unknown member has spent nothing. */
function correct(state: GroupState, { correction }: StepEventOf<'correct_spend'>, now: InstantMs) {
  const known = allLedgers(state).flatMap(({ controls }) => correctionsOf(controls.spend));
  const { id, member } = correction;
  const of = member === null ? state : state.members.get(memberId(member));
  if (of === undefined || known.some((each) => each.id === id)) return;
  correctSpend(of.controls.spend, correction, now);
  noteCorrected(state);
}

/** A budget that refused calls may have room now. */
function noteCorrected(state: GroupState) {
  state.budgetStop = null;
  state.isControlsDirty = true;
}

/** Ends the ejection of a member without a probe. An unknown member has no state to change. */
function bringBack(state: GroupState, event: StepEventOf<'bring_back'>, now: InstantMs) {
  const member = state.members.get(event.member);
  if (member === undefined || !isSplit(state)) return;
  Object.assign(member.controls.outage, noOutage(now));
  state.isControlsDirty = true;
}

function move(state: GroupState, now: InstantMs, effects: Effect[]) {
  if (queueLength(state.queue) === 0) return;
  for (const waiter of state.queue.byTicket.values()) {
    leave(state, waiter, { kind: 'moved' }, now, effects);
  }
  // Most of them return immediately. No younger call may start before they do.
  state.grantsFrom = instant(Math.max(state.grantsFrom, after(now, MOVE_SETTLE_MS)));
  state.dispersedAt = now;
}

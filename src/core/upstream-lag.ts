import { instant, type InstantMs } from './words/ids.ts';
import type { UpstreamSignal } from './words/signal.ts';
import { failProbe, isProbing, isPrompt, slotsMaxNow, slotsProven } from './parts/ceiling.ts';
import { noteOpenRefusal } from './parts/evidence.ts';
import { explainsRefusal, noteAccepted, endedSince, endOf, noteEnd } from './parts/lag.ts';
import { atUpstream } from './capacity.ts';
import type { AtGrant, Limiter } from './member.ts';
import { memberOf, type GroupState, type ActiveLease } from './state.ts';

/** How much longer the upstream counts a call than the group does. This file connects leases with `parts/lag.ts`. */

/**
 * Stores how many calls are at the upstream when a call may be sent, and how recently others have ended that may still
 * count there.
 */
export function noteCallable(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  lease.callableAt = now;
  noteAtGrant(state, memberOf(state, lease), lease, lease, now);
  for (const one of lease.scopes) noteAtGrant(state, one.limiter, one, lease, now);
}

function noteAtGrant(
  state: GroupState,
  limiter: Limiter,
  atGrant: AtGrant,
  { slots }: ActiveLease,
  now: InstantMs,
): void {
  atGrant.slotsAtGrant = atUpstream(state, limiter);
  atGrant.gapMs = gapOf(limiter, slots, atGrant.slotsAtGrant, now);
  const ended = endedWithin(limiter, limiter.controls.lag.sure.ms, now);
  atGrant.slotsCounted = atGrant.slotsAtGrant + ended;
}

/** Infinity if more calls are there than the upstream ever served. It may refuse those without any lag. */
function gapOf(
  { settings, controls, recentEnds }: Limiter,
  slots: number,
  slotsAtGrant: number,
  now: InstantMs,
): number {
  const proven = slotsProven(controls.ceiling, settings, now);
  if (slots === 0 || slotsAtGrant > proven) return Infinity;
  return now - endOf(recentEnds, proven - slotsAtGrant + 1);
}

/** Notes that a call at the upstream has ended. A refused call never counted there. */
export function noteEndThere(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  if (lease.isRefused || lease.waitsElsewhere) return;
  noteEnd(memberOf(state, lease).recentEnds, lease.slots, now);
  for (const { limiter } of lease.scopes) noteEnd(limiter.recentEnds, lease.slots, now);
}

/**
 * Handles a refusal for too many concurrent calls. Returns whether a lag may explain it. If so, nothing is learned
 * about the number of calls that the upstream accepts, unless a longer cooldown does not help.
 */
export function isLag(
  state: GroupState,
  { settings, controls }: Limiter,
  { ticketId, callableAt: grantedAt }: ActiveLease,
  { slotsAtGrant, gapMs }: AtGrant,
  { slotsMax: namedSlotsMax }: Pick<UpstreamSignal, 'slotsMax'>,
  othersInUse: number,
  now: InstantMs,
): boolean {
  if (state.settings.releaseCooldownMs !== 'auto' || !isPrompt(grantedAt, now)) return false;
  if (namedSlotsMax !== null && namedSlotsMax < slotsAtGrant) return false;
  if (slotsAtGrant > slotsProven(controls.ceiling, settings, now)) return false;
  if (isProbing(controls.ceiling, now)) {
    failProbe(controls.ceiling, settings, ticketId, now);
    return true;
  }
  if (!explainsRefusal(controls.lag, { ticketId, grantedAt, slotsAtGrant, gapMs }, now)) {
    return false;
  }
  noteOpenRefusal(controls.ceiling.evidence, { ticketId, othersInUse }, now);
  return true;
}

/** Counts the slots of ended calls that the upstream still counts, as far as is known. */
export function slotsLagging(limiter: Limiter, now: InstantMs): number {
  return endedWithin(limiter, limiter.controls.lag.ms, now);
}

function endedWithin({ recentEnds }: Limiter, ms: number, now: InstantMs): number {
  return endedSince(recentEnds, instant(now - ms));
}

export function noteTakenAfterGap(
  state: GroupState,
  limiter: Limiter,
  { callableAt: grantedAt }: ActiveLease,
  { slotsAtGrant, slotsCounted, gapMs }: AtGrant,
): void {
  const { lag } = limiter.controls;
  const before = lag.ms;
  const slots = slotsMaxNow(limiter.controls.ceiling, limiter.settings);
  const full = { isLast: slotsAtGrant >= slots, isLastCounted: slotsCounted >= slots };
  noteAccepted(lag, { grantedAt, slotsAtGrant, gapMs }, full);
  if (lag.ms !== before) state.isControlsDirty = true;
}

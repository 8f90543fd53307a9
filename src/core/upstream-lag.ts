import { instant, type InstantMs } from './words/ids.ts';
import type { UpstreamSignal } from './words/signal.ts';
import { failProbe, isProbing, isPrompt, slotsProven } from './parts/ceiling.ts';
import { noteOpenRefusal } from './parts/evidence.ts';
import { explainsRefusal, noteAccepted } from './parts/lag.ts';
import { endedSince, endOf, noteEnd } from './parts/recent-ends.ts';
import { atUpstream, memberSlotsLearned } from './capacity.ts';
import type { Member } from './member.ts';
import { memberOf } from './members.ts';
import type { GroupState, Lease } from './state.ts';

/** How much longer the upstream counts a call than the group does: what is asked of `parts/lag.ts`, and told to it. */

/** Notes what is at the upstream when a call may go out, and how long ago those had ended that may still count. */
export function noteCallable(state: GroupState, lease: Lease, now: InstantMs): void {
  lease.callableAt = now;
  const member = memberOf(state, lease);
  lease.slotsAtGrant = atUpstream(state, member);
  lease.gapMs = gapOf(member, lease, now);
  lease.slotsCounted = lease.slotsAtGrant + endedWithin(member, member.controls.lag.sure.ms, now);
}

/** Infinity where more are there than the upstream was seen to take: it needs no lag to refuse those. */
function gapOf(member: Member, { slots, slotsAtGrant }: Lease, now: InstantMs): number {
  const { settings, controls, recentEnds } = member;
  const proven = slotsProven(controls.ceiling, settings, now);
  if (slots === 0 || slotsAtGrant > proven) return Infinity;
  return now - endOf(recentEnds, proven - slotsAtGrant + 1);
}

/** Notes that a call has ended that was at the upstream. One that it refused never counted there. */
export function noteEndThere(state: GroupState, lease: Lease, now: InstantMs): void {
  const { recentEnds } = memberOf(state, lease);
  if (!lease.isRefused && !lease.waitsElsewhere) noteEnd(recentEnds, lease.slots, now);
}

/**
 * Takes in that a call was refused because too many were in flight. Returns whether a lag may be why: then nothing
 * is learned of how many the upstream takes, unless the longer cool-down does not cure it.
 */
export function isLag(
  state: GroupState,
  { settings, controls }: Member,
  lease: Lease,
  { slotsMax: namedSlotsMax }: Pick<UpstreamSignal, 'slotsMax'>,
  othersInUse: number,
  now: InstantMs,
): boolean {
  const { ticketId, callableAt: grantedAt, slotsAtGrant, gapMs } = lease;
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

/** Counts the slots of calls that have ended, and that the upstream still counts as far as is known. */
export function slotsLagging(member: Member, now: InstantMs): number {
  return endedWithin(member, member.controls.lag.ms, now);
}

function endedWithin({ recentEnds }: Member, ms: number, now: InstantMs): number {
  return endedSince(recentEnds, instant(now - ms));
}

/** Takes in that a call was accepted. */
export function noteTakenAfterGap(state: GroupState, member: Member, lease: Lease): void {
  const { lag } = member.controls;
  const { callableAt: grantedAt, slotsAtGrant, slotsCounted, gapMs } = lease;
  const before = lag.ms;
  const slots = memberSlotsLearned(member);
  const full = { isLast: slotsAtGrant >= slots, isLastCounted: slotsCounted >= slots };
  noteAccepted(lag, { grantedAt, slotsAtGrant, gapMs }, full);
  if (lag.ms !== before) state.isControlsDirty = true;
}

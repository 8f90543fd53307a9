import { IMPLICIT, instant, later, type InstantMs, type LeaseId } from './words/ids.ts';
import {
  takesOut,
  type Blame,
  type RefusalKind,
  type TakingOut,
  type UpstreamSignal,
} from './words/signal.ts';
import type { Usage } from './words/usage.ts';
import {
  allows as breakerAllows,
  hasFailedLately,
  noteEnded as breakerEnded,
  noteFailed as breakerFailed,
  noteGranted as breakerGranted,
  noteServed as breakerServed,
} from './parts/breaker.ts';
import {
  noteConcurrencyRefusal,
  noteOverload,
  noteServed as ceilingServed,
  slotsMaxNow,
  slotsProven,
  type RefusedCall,
} from './parts/ceiling.ts';
import { isInDoubt, noteAccepted } from './parts/evidence.ts';
import { noteFewer } from './parts/lag.ts';
import {
  noteBlamed,
  noteEnded as outageEnded,
  noteGranted as outageGranted,
  noteRefused as outageRefused,
  noteServed as outageServed,
} from './parts/outage.ts';
import {
  noteEnded as pauseEnded,
  noteGranted as pauseGranted,
  noteRefused as pauseRefused,
  noteServed as pauseServed,
  pauseFor,
} from './parts/pause.ts';
import { drain, lowerToHint } from './parts/rates.ts';
import { noteTaken, noteRepeatRefusal } from './parts/repeat-refusals.ts';
import { atUpstream, memberSlotsLearned } from './capacity.ts';
import type { Member } from './member.ts';
import { isSplit, memberOf, refusalKey } from './members.ts';
import { applyReport, applySeen, refuteReports } from './reports.ts';
import type { GroupState, Lease } from './state.ts';
import { noteRefusal, noteSignal } from './stats.ts';
import { isLag, slotsLagging, noteTakenAfterGap } from './upstream-lag.ts';

const NOTHING: Usage = { requests: 0, inputTokens: 0, outputTokens: 0 };

/**
 * Applies the upstream's answer to a call. Different causes, different medicine; what is
 * in flight is never touched.
 *
 * - Too many at once: slots cool down for longer; where that does not help, or cannot be why, the ceiling comes
 *   down to what the upstream did accept.
 * - Overload: the ceiling is cut by a part, and the breaker counts a failure.
 * - Requests or tokens: a pause as long as the upstream says, and that limit counts as used up.
 * - A long window: a pause until the instant that the upstream names; without one there is none.
 * - A refused key, a quota that is used up, egress: the member is out once another one has served the call. Until then
 *   nothing follows, not even a row: the call may be to blame, which every member would refuse. So it is in a group that
 *   names none.
 * - What never fits: nothing, because other calls may fare better.
 * - A report of a lease's holder has the same effects, for as long as `reports.ts` allows.
 *
 * `isRepeat`: the upstream said so to this call before. One call may stop a group once only, or a call
 * that is refused whatever happens would stop everybody again and again.
 */
export function applySignal(
  state: GroupState,
  lease: Lease,
  signal: UpstreamSignal,
  isRepeat: boolean,
  now: InstantMs,
): void {
  const member = memberOf(state, lease);
  const { settings, controls } = member;
  const { kind, reportedBy } = signal;
  // An upstream that asks for no wait at all after a refusal does not know how long it will last.
  const retryAfterMs = signal.retryAfterMs === 0 ? null : signal.retryAfterMs;
  const before = lessonOf(member);
  state.talliesDirtyAt ??= now;
  noteSignal(lease, signal);
  lease.hasAnswer = true;
  // Remaining limits are read only from answers that Headgate saw: a report could keep them empty.
  const hints = reportedBy === undefined ? signal.hints : [];
  for (const hint of hints) lowerToHint(controls.rates, settings.rates, hint, NOTHING, now);
  if (kind === 'served') {
    refuteReports(state, member, lease, reportedBy, now);
    applyServed(state, member, lease, signal, now);
    askToWait(state, member, lease, signal, now);
    for (const blame of signal.blamed ?? []) takeOutBlamed(state, lease, blame, now);
    // Most of what is served teaches nothing that is worth a row.
    if (lessonOf(member) !== before) state.isControlsDirty = true;
    return;
  }
  noteRefusal(state, lease, kind, signal, now);
  const apply = (afterMs: number | null): void =>
    applyRefusal(state, member, lease, { ...signal, kind, retryAfterMs: afterMs }, isRepeat, now);
  if (reportedBy === undefined) {
    return applySeen(state, member, kind, () => apply(retryAfterMs), now);
  }
  const { slotsMax } = signal;
  applyReport(state, member, { kind, by: reportedBy, retryAfterMs, slotsMax }, apply, now);
}

type Refusal = UpstreamSignal & { readonly kind: RefusalKind };

/** Learns from a refusal, as `applySignal` lists it. */
function applyRefusal(
  state: GroupState,
  member: Member,
  lease: Lease,
  { kind, retryAfterMs, ...signal }: Refusal,
  isRepeat: boolean,
  now: InstantMs,
): void {
  const { settings, controls } = member;
  const { ceiling, breaker, pause, rates } = controls;
  const { id: leaseId, callableAt: grantedAt } = lease;
  // A call that never fits shows nothing of the pause.
  if (kind !== 'never_fits' && pauseRefused(pause, leaseId, now)) state.isControlsDirty = true;
  if (takesOut(kind)) return keepOut(state, member, kind, leaseId, now);
  state.isControlsDirty = true;
  // What is unclaimed after a reset may be there: without it the upstream would seem to take next to nothing.
  const othersInUse = atUpstream(state, member) + member.unclaimed;
  const call = { ticketId: lease.ticketId, grantedAt, othersInUse };
  const isReported = signal.reportedBy !== undefined;
  const failed = { leaseId, grantedAt, retryAfterMs, isReported };
  // What a lease holder reports lasts for a minute at most, and its words are not the upstream's.
  const words = isReported ? null : (signal.words ?? null);
  const isProbed = settings.probesPauses && !isReported;
  const pauseOnce = (isLongWindow: boolean): void => {
    if (isRepeat) return;
    pauseFor(pause, { grantedAt, retryAfterMs, isLongWindow, words, isProbed }, now);
  };
  switch (kind) {
    case 'concurrency':
      noteRepeatRefusal(state.repeatRefusals, refusalKey(lease.ticketId, member.id), now);
      lease.isLagging = isLag(state, member, lease, signal, othersInUse, now);
      if (lease.isLagging) return;
      return lowerCeiling(member, call, signal.slotsMax, now);
    case 'overload':
      noteOverload(ceiling, settings, call, now);
      breakerFailed(breaker, failed, now, settings.breaker);
      if (retryAfterMs !== null) pauseOnce(false);
      return;
    case 'error':
      return breakerFailed(breaker, failed, now, settings.breaker);
    case 'requests':
    case 'tokens':
      if (!isRepeat && !isReported) drain(rates, settings.rates, kind, now);
      return pauseOnce(false);
    case 'ramp':
      // It asks for slower growth: fewer at once, and a while to get there.
      noteOverload(ceiling, settings, call, now);
      return pauseOnce(false);
    case 'unknown':
      return pauseOnce(false);
    case 'long_window':
      if (retryAfterMs !== null) pauseOnce(true);
      return;
    case 'never_fits':
      return;
  }
}

/** Takes a member out that has refused a call which another one has served now. */
function takeOutBlamed(
  state: GroupState,
  served: Lease,
  { member: id, kind, agoMs }: Blame,
  now: InstantMs,
): void {
  const member = state.members.get(id);
  if (member === undefined || id === served.member || !isSplit(state) || !takesOut(kind)) return;
  // What runs on from before the group named members is at none of them.
  if (id === IMPLICIT) return;
  const refusedAt = instant(now - agoMs);
  if (noteBlamed(member.controls.outage, kind, refusedAt, now)) state.isControlsDirty = true;
}

/** Keeps a member out whose probe was refused. */
function keepOut(
  state: GroupState,
  { controls }: Member,
  reason: TakingOut,
  leaseId: LeaseId,
  now: InstantMs,
): void {
  const isProbe = outageRefused(controls.outage, reason, leaseId, now);
  if (isProbe || reason === 'quota') state.isControlsDirty = true;
}

/** Learns from a refusal for concurrency that no lag explains. */
function lowerCeiling(
  member: Member,
  call: RefusedCall,
  namedSlotsMax: number | null,
  now: InstantMs,
): void {
  const { settings, controls } = member;
  const { ceiling, lag } = controls;
  const before = slotsProven(ceiling, settings, now);
  const othersInUse = call.othersInUse + slotsLagging(member, now);
  noteConcurrencyRefusal(ceiling, settings, { ...call, othersInUse, namedSlotsMax }, now);
  if (memberSlotsLearned(member) < before) noteFewer(lag, call.ticketId);
}

/** Names what was learned of the upstream so far, as far as it decides anything. */
function lessonOf(member: Member): string {
  const { pause, breaker, outage } = member.controls;
  const ofPause = [pause.until, pause.openMs];
  return [
    memberSlotsLearned(member),
    ...ofPause,
    breaker.phase,
    breaker.openUntil,
    outage.reason,
  ].join();
}

/** Learns from a served call. */
function applyServed(
  state: GroupState,
  member: Member,
  lease: Lease,
  { isMistake = false }: UpstreamSignal,
  now: InstantMs,
): void {
  const { settings, controls } = member;
  const { id: leaseId, callableAt: grantedAt, slotsAtGrant } = lease;
  const slotsInUse = atUpstream(state, member);
  ceilingServed(controls.ceiling, settings, { grantedAt, slotsAtGrant, slotsInUse }, now);
  breakerServed(controls.breaker, { leaseId, grantedAt }, now, settings.breaker);
  if (!isMistake) outageServed(controls.outage, leaseId, now);
  noteTakenAfterGap(state, member, lease);
  noteTaken(state.repeatRefusals, grantedAt);
  member.servedGrantAt = later(member.servedGrantAt, grantedAt);
  pauseServed(controls.pause, { leaseId, grantedAt, isMistake }, now);
}

/** Pauses if the answer to a served call asks the next calls to wait, because a limit is nearly used up. */
function askToWait(
  state: GroupState,
  member: Member,
  { callableAt: grantedAt }: Lease,
  { retryAfterMs, reportedBy }: UpstreamSignal,
  now: InstantMs,
): void {
  if (retryAfterMs === null || retryAfterMs === 0) return;
  const pause = (afterMs: number | null): void => {
    const cause = { grantedAt, retryAfterMs: afterMs, isLongWindow: false };
    pauseFor(member.controls.pause, cause, now);
  };
  const kind = 'requests';
  if (reportedBy === undefined) {
    return applySeen(state, member, kind, () => pause(retryAfterMs), now);
  }
  applyReport(state, member, { kind, by: reportedBy, retryAfterMs, slotsMax: null }, pause, now);
}

/**
 * Notes a grant: while the breaker is not closed, it is a probe. But for one that passes though the
 * breaker allows none: a nested call, or any in a dry run.
 */
export function noteGranted({ controls }: Member, { id }: Lease, now: InstantMs): void {
  outageGranted(controls.outage, id);
  pauseGranted(controls.pause, id, now);
  if (breakerAllows(controls.breaker, now)) breakerGranted(controls.breaker, id);
}

/**
 * Notes that a call ended well. Most groups hear of it only now, and without it a few failures among many
 * calls would seem to be all there is. Not worth a row of its own: that is written when something fails. It may have
 * ended with a mistake of its caller, so it brings no member back that is out.
 */
export function noteSuccess(state: GroupState, lease: Lease, now: InstantMs): void {
  const { repeatRefusals } = state;
  const member = memberOf(state, lease);
  const { controls, settings } = member;
  if (lease.hasAnswer) return;
  // Only a call that Headgate made itself is known to have ended well.
  if (!lease.isById) refuteReports(state, member, lease, undefined, now);
  const { id: leaseId, callableAt: grantedAt, slotsAtGrant } = lease;
  breakerServed(controls.breaker, { leaseId, grantedAt }, now, settings.breaker);
  noteAccepted(controls.ceiling.evidence, { grantedAt, slotsAtGrant }, now);
  noteTakenAfterGap(state, member, lease);
  noteTaken(repeatRefusals, grantedAt);
  member.servedGrantAt = later(member.servedGrantAt, grantedAt);
}

/** Notes the end of a lease. `isLost`: its holder was not heard of any more. */
export function noteEnded(state: GroupState, lease: Lease, isLost: boolean, now: InstantMs): void {
  const { controls, settings } = memberOf(state, lease);
  const { breaker, outage, pause } = controls;
  breakerEnded(breaker, lease.id, isLost, now, settings.breaker);
  pauseEnded(pause, lease.id);
  outageEnded(outage, lease.id);
}

/**
 * Whether a member wants to hear at the headers that a call was served: it probes its upstream, or could
 * learn that it takes more. All others spare the message.
 */
export function wantsServed(
  { settings, controls, slotsInUse, reports }: Member,
  now: InstantMs,
): boolean {
  const { ceiling, breaker, pause, outage } = controls;
  if (reports.unconfirmed !== null) return true;
  if (outage.reason !== null) return true;
  if (breaker.phase !== 'closed' || hasFailedLately(breaker, now, settings.breaker)) return true;
  if (pause.openMs > 0 || pause.probe !== null || isInDoubt(ceiling.evidence, now)) return true;
  if (!settings.isAdaptive || (settings.isHard && ceiling.slots === null)) return false;
  return slotsInUse >= 0.8 * slotsMaxNow(ceiling, settings);
}

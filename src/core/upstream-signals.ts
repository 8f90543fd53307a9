import { IMPLICIT, instant, later, type InstantMs, type LeaseId } from './words/ids.ts';
import {
  takesOut,
  namesOf,
  type Blame,
  type RefusalKind,
  type EjectingRefusal,
  type UpstreamSignal,
} from './words/signal.ts';
import type { CallUsage } from './words/ticket.ts';
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
import { isInDoubt, noteAccepted, noteContradicted, wouldContradict } from './parts/evidence.ts';
import { noteFewer } from './parts/lag.ts';
import {
  noteBlamed,
  outageEnded,
  outageGranted,
  outageRefused,
  outageServed,
  noteEnded as pauseEnded,
  noteGranted as pauseGranted,
  noteRefused as pauseRefused,
  noteServed as pauseServed,
  pauseFor,
} from './parts/pause.ts';
import { drain, lowerToHint } from './parts/rates.ts';
import { noteTaken, noteRepeatRefusal } from './parts/affinity.ts';
import { atUpstream } from './capacity.ts';
import type { AtGrant, Limiter, Member } from './member.ts';
import { isSplit, memberOf, refusalKey, type GroupState, type ActiveLease } from './state.ts';
import { applyReport, applyReportInScope, applySeen, refuteReports } from './reports.ts';
import { isSurelyIn, limiterOf, lowerRates, noteNames, speaksForAll } from './scopes.ts';
import { noteRefusal, noteSignal } from './stats.ts';
import { isLag, slotsLagging, noteTakenAfterGap } from './upstream-lag.ts';

const NOTHING: CallUsage = { requests: 0, inputTokens: 0, outputTokens: 0 };

/**
 * Applies the upstream's answer to a call. Calls in flight are never affected.
 *
 * - Concurrency: the cooldown becomes longer. If that does not help, or cannot be the cause, the ceiling falls to the
 *   number that the upstream did accept.
 * - Overload: the ceiling falls by a share, and the breaker counts a failure.
 * - Requests or tokens: a pause as long as the upstream asks for, and that limit counts as used up.
 * - A long window: a pause until the instant that the upstream names. Without one there is no pause.
 * - A refused key, a used-up quota, egress: the member is ejected once another member has served the call. Until then
 *   there is no effect and no row, because every member might refuse this call. In a group without members that never
 *   happens.
 * - A call that never fits: no effect, because other calls may fit.
 * - A report of a lease's holder has the same effects, for as long as `reports.ts` allows.
 *
 * With `isRepeat`, the upstream gave this call the same answer before. One call may stop a group only once. Otherwise a
 * call that is always refused would stop all others again and again.
 */
export function applySignal(
  state: GroupState,
  lease: ActiveLease,
  signal: UpstreamSignal,
  isRepeat: boolean,
  now: InstantMs,
): void {
  const member = memberOf(state, lease);
  const { settings, controls } = member;
  const { kind, reportedBy } = signal;
  // A retry time of 0 after a refusal means that the upstream does not know how long it will last.
  const retryAfterMs = signal.retryAfterMs === 0 ? null : signal.retryAfterMs;
  const before = lessonsOf(member, lease);
  state.talliesDirtyAt ??= now;
  noteNames(state, member, lease, signal, now);
  noteSignal(lease, signal);
  lease.hasAnswer = true;
  // Remaining limits are read only from answers that Headgate saw: a report could keep them empty.
  const hints = reportedBy === undefined && speaksForAll(state, lease, now) ? signal.hints : [];
  const takeHints = (): void => {
    for (const hint of hints) lowerToHint(controls.rates, settings.rates, hint, NOTHING, now);
  };
  // Only a refusal's effect on the rates is undone when the first call with another key comes.
  const isOfAll = namesOf(lease.holder).credential === null;
  if (kind === 'served') {
    if (isOfAll) takeHints();
    refuteReports(state, member, lease, reportedBy, now);
    applyServed(state, member, lease, signal, now);
    askToWait(state, member, lease, signal, now);
    for (const blame of signal.blamed ?? []) takeOutBlamed(state, lease, blame, now);
    // Most served calls teach nothing that is worth a row.
    if (lessonsOf(member, lease) !== before) state.isControlsDirty = true;
    return;
  }
  noteRefusal(state, lease, kind, signal, now);
  if (isOfAll && (takesOut(kind) || kind === 'never_fits')) takeHints();
  if (kind !== 'never_fits') noteProbeRefused(state, member, lease, now);
  if (takesOut(kind)) {
    // A lease holder's report says nothing about a member's key.
    if (reportedBy === undefined) keepOut(state, member, kind, lease.id, now);
    return;
  }
  // Other calls may still fit.
  if (kind === 'never_fits') return;
  const limiter = limiterOf(state, member, lease, signal, now);
  // The remaining amount of one model does not apply to all models.
  if (limiter === member) lowerRates(member, now, takeHints);
  if (limiter === null) return;
  const apply = (afterMs: number | null): void => {
    const refusal = { ...signal, kind, retryAfterMs: afterMs };
    applyRefusal(state, { member, limiter, lease }, refusal, isRepeat, now);
  };
  if (limiter !== member) {
    if (reportedBy === undefined) return apply(retryAfterMs);
    const report = { by: reportedBy, retryAfterMs };
    return applyReportInScope(state, member, limiter, report, apply, now);
  }
  if (reportedBy === undefined) {
    return applySeen(state, member, kind, () => apply(retryAfterMs), now);
  }
  const { slotsMax } = signal;
  applyReport(state, member, { kind, by: reportedBy, retryAfterMs, slotsMax }, apply, now);
}

/** Notes that a call was refused. If it was a probe, the next one comes later. */
function noteProbeRefused(
  state: GroupState,
  member: Member,
  lease: ActiveLease,
  now: InstantMs,
): void {
  for (const [{ controls }] of limitersOf(member, lease)) {
    if (pauseRefused(controls.pause, lease.id, now)) state.isControlsDirty = true;
  }
}

type RefusalSignal = UpstreamSignal & {
  readonly kind: Exclude<RefusalKind, EjectingRefusal | 'never_fits'>;
};

/** A refused call, its member, and the limiter of the calls that the refusal is about. */
interface SignaledRefusal {
  readonly member: Member;
  readonly limiter: Limiter;
  readonly lease: ActiveLease;
}

/** Learns from a refusal, with the effects that `applySignal` lists. */
function applyRefusal(
  state: GroupState,
  { member, limiter, lease }: SignaledRefusal,
  { kind, retryAfterMs, ...signal }: RefusalSignal,
  isRepeat: boolean,
  now: InstantMs,
): void {
  const { settings, controls } = limiter;
  const { ceiling, breaker, pause } = controls;
  const { id: leaseId, callableAt: grantedAt } = lease;
  state.isControlsDirty = true;
  // Orphaned slots may be at the upstream. Without them it would seem to accept almost no calls.
  const othersInUse = atUpstream(state, limiter) + limiter.unclaimed;
  const call = { ticketId: lease.ticketId, grantedAt, othersInUse };
  const isReported = signal.reportedBy !== undefined;
  // A lease holder's report counts for at most a minute, and its message is not the upstream's.
  const words = isReported ? null : (signal.words ?? null);
  const isProbed = settings.probesPauses && !isReported;
  const isRate = signal.isRate === true;
  const isOverload = kind === 'overload' && !isRate;
  const limit = isRate ? { limit: { words } } : {};
  const failed = { leaseId, grantedAt, retryAfterMs, isReported, ...limit };
  const pauseOnce = (isLongWindow: boolean): void => {
    if (isRepeat) return;
    const cause = { grantedAt, retryAfterMs, isLongWindow, isOverload, words, isProbed };
    pauseFor(pause, cause, now);
  };
  switch (kind) {
    case 'concurrency':
      noteRepeatRefusal(state.repeatRefusals, refusalKey(lease.ticketId, member.id), now);
      lease.isLagging = isLag(
        state,
        limiter,
        lease,
        atGrantIn(lease, limiter),
        signal,
        othersInUse,
        now,
      );
      if (lease.isLagging) return;
      return lowerCeiling(limiter, call, signal.slotsMax, now);
    case 'overload':
      noteOverload(ceiling, settings, call, now);
      breakerFailed(breaker, failed, now, settings.breaker);
      if (retryAfterMs !== null) pauseOnce(false);
      return;
    case 'error':
      return breakerFailed(breaker, failed, now, settings.breaker);
    case 'requests':
    case 'tokens':
      if (!isRepeat && !isReported && limiter === member) {
        const { rates } = member.controls;
        lowerRates(member, now, () => drain(rates, member.settings.rates, kind, now));
      }
      return pauseOnce(false);
    case 'ramp':
      // The upstream asks for slower growth: fewer concurrent calls, and time to reach them.
      noteOverload(ceiling, settings, call, now);
      return pauseOnce(false);
    case 'unknown':
      return pauseOnce(false);
    case 'long_window':
      if (retryAfterMs !== null) pauseOnce(true);
      return;
  }
}

/** Ejects a member that refused a call which another member has now served. */
function takeOutBlamed(
  state: GroupState,
  served: ActiveLease,
  { member: id, kind, agoMs }: Blame,
  now: InstantMs,
): void {
  const member = state.members.get(id);
  if (member === undefined || id === served.member || !isSplit(state) || !takesOut(kind)) return;
  // A call from before the group had members is at none of them.
  if (id === IMPLICIT) return;
  const refusedAt = instant(now - agoMs);
  if (noteBlamed(member.controls.outage, kind, refusedAt, now)) state.isControlsDirty = true;
}

/** Keeps a member ejected whose probe was refused. */
function keepOut(
  state: GroupState,
  { controls }: Member,
  reason: EjectingRefusal,
  leaseId: LeaseId,
  now: InstantMs,
): void {
  const isProbe = outageRefused(controls.outage, reason, leaseId, now);
  if (isProbe || reason === 'quota') state.isControlsDirty = true;
}

/** Learns from a refusal for concurrency that no lag explains. */
function lowerCeiling(
  limiter: Limiter,
  call: RefusedCall,
  namedSlotsMax: number | null,
  now: InstantMs,
): void {
  const { settings, controls } = limiter;
  const { ceiling, lag } = controls;
  const before = slotsProven(ceiling, settings, now);
  const othersInUse = call.othersInUse + slotsLagging(limiter, now);
  noteConcurrencyRefusal(ceiling, settings, { ...call, othersInUse, namedSlotsMax }, now);
  if (slotsMaxNow(ceiling, settings) < before) noteFewer(lag, call.ticketId);
}

/** Returns the calls that a limiter counted at the upstream when a lease was granted. */
function atGrantIn(lease: ActiveLease, limiter: Limiter): AtGrant {
  return lease.scopes.find((one) => one.limiter === limiter) ?? lease;
}

/** Lists the limiters of a lease, each with its calls at the upstream when the lease was granted. */
function limitersOf(member: Member, lease: ActiveLease): readonly (readonly [Limiter, AtGrant])[] {
  return [[member, lease], ...lease.scopes.map((one) => [one.limiter, one] as const)];
}

/** Returns a text that changes with the lessons that affect a call. */
function lessonsOf(member: Member, lease: ActiveLease): string {
  const lessons = limitersOf(member, lease).flatMap(([{ controls, settings }]) => {
    const { pause, breaker, ceiling } = controls;
    const slots = slotsMaxNow(ceiling, settings);
    return [slots, pause.until, pause.openMs, breaker.phase, breaker.openUntil];
  });
  return [...lessons, member.controls.outage.reason].join();
}

function applyServed(
  state: GroupState,
  member: Member,
  lease: ActiveLease,
  { isMistake = false }: UpstreamSignal,
  now: InstantMs,
): void {
  const { id: leaseId, callableAt: grantedAt } = lease;
  noteContradicted(state.seen, namesOf(lease.holder));
  for (const [limiter, atGrant] of limitersOf(member, lease)) {
    const { settings, controls } = limiter;
    const { slotsAtGrant } = atGrant;
    const slotsInUse = atUpstream(state, limiter);
    ceilingServed(controls.ceiling, settings, { grantedAt, slotsAtGrant, slotsInUse }, now);
    breakerServed(controls.breaker, { leaseId, grantedAt }, now, settings.breaker);
    noteTakenAfterGap(state, limiter, lease, atGrant);
    if (isSurelyIn(limiter, lease.holder)) {
      pauseServed(controls.pause, { leaseId, grantedAt, isMistake }, now);
    }
  }
  if (!isMistake) outageServed(member.controls.outage, leaseId, now);
  noteTaken(state.repeatRefusals, grantedAt);
  member.servedGrantAt = later(member.servedGrantAt, grantedAt);
}

/** Pauses if the answer to a served call asks the next calls to wait, because a limit is nearly used up. */
function askToWait(
  state: GroupState,
  member: Member,
  lease: ActiveLease,
  signal: UpstreamSignal,
  now: InstantMs,
): void {
  const { retryAfterMs, reportedBy } = signal;
  if (retryAfterMs === null || retryAfterMs === 0) return;
  const limiter =
    limiterOf(state, member, lease, { ...signal, scope: 'credential' }, now) ?? member;
  const pause = (afterMs: number | null): void => {
    const cause = { grantedAt: lease.callableAt, retryAfterMs: afterMs, isLongWindow: false };
    pauseFor(limiter.controls.pause, cause, now);
  };
  if (limiter !== member) {
    state.isControlsDirty = true;
    if (reportedBy === undefined) return pause(retryAfterMs);
    const report = { by: reportedBy, retryAfterMs };
    return applyReportInScope(state, member, limiter, report, pause, now);
  }
  const kind = 'requests';
  if (reportedBy === undefined) {
    return applySeen(state, member, kind, () => pause(retryAfterMs), now);
  }
  applyReport(state, member, { kind, by: reportedBy, retryAfterMs, slotsMax: null }, pause, now);
}

/**
 * Notes a grant. While the breaker is not closed, the call is a probe, unless it passes without a permit: a nested
 * call, or any call in a dry run.
 */
export function noteGranted(member: Member, lease: ActiveLease, now: InstantMs): void {
  const { id } = lease;
  outageGranted(member.controls.outage, id);
  for (const [{ controls }] of limitersOf(member, lease)) {
    pauseGranted(controls.pause, id, now);
    if (breakerAllows(controls.breaker, now)) breakerGranted(controls.breaker, id);
  }
}

/**
 * Learns from a call that succeeded. Most groups learn of served calls only here. Without them, a few failures among
 * many calls would seem to be all results. Nothing is written for it before something fails. The call may have ended
 * with a mistake of its caller, so it never ends an ejection.
 */
export function noteSuccess(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  const { repeatRefusals } = state;
  const member = memberOf(state, lease);
  if (lease.hasAnswer) return;
  // For leases by id, only their holder reports the success.
  if (!lease.isById) refuteReports(state, member, lease, undefined, now);
  noteContradicted(state.seen, namesOf(lease.holder));
  const { id: leaseId, callableAt: grantedAt } = lease;
  for (const [limiter, atGrant] of limitersOf(member, lease)) {
    const { controls, settings } = limiter;
    const { slotsAtGrant } = atGrant;
    breakerServed(controls.breaker, { leaseId, grantedAt }, now, settings.breaker);
    noteAccepted(controls.ceiling.evidence, { grantedAt, slotsAtGrant }, now);
    noteTakenAfterGap(state, limiter, lease, atGrant);
  }
  noteTaken(repeatRefusals, grantedAt);
  member.servedGrantAt = later(member.servedGrantAt, grantedAt);
}

/** Notes the end of a lease. `isLost` if its holder did not report it. */
export function noteEnded(
  state: GroupState,
  lease: ActiveLease,
  isLost: boolean,
  now: InstantMs,
): void {
  const member = memberOf(state, lease);
  for (const [{ controls, settings }] of limitersOf(member, lease)) {
    breakerEnded(controls.breaker, lease.id, isLost, now, settings.breaker);
    pauseEnded(controls.pause, lease.id);
  }
  outageEnded(member.controls.outage, lease.id);
}

/**
 * Whether a member wants a report at the headers that a call was served, because it probes its upstream or may learn a
 * higher limit. All other calls avoid that message.
 */
export function wantsServed(member: Member, now: InstantMs): boolean {
  const { controls, reports } = member;
  return reports.unconfirmed !== null || controls.outage.reason !== null || isOpen(member, now);
}

/** Whether the call must be reported as soon as its headers arrive, for its member or one of its scopes. */
export function wantsAnswer(state: GroupState, lease: ActiveLease, now: InstantMs): boolean {
  if (wantsServed(memberOf(state, lease), now)) return true;
  if (lease.scopes.some(({ limiter }) => isOpen(limiter, now))) return true;
  return wouldContradict(state.seen, namesOf(lease.holder), now);
}

/** Whether the next served call changes a lesson. */
function isOpen({ settings, controls, slotsInUse }: Limiter, now: InstantMs): boolean {
  const { ceiling, breaker, pause } = controls;
  if (breaker.phase !== 'closed' || hasFailedLately(breaker, now, settings.breaker)) return true;
  if (pause.openMs > 0 || pause.probe !== null || isInDoubt(ceiling.evidence, now)) return true;
  if (!settings.isAdaptive || (settings.isHard && ceiling.slots === null)) return false;
  return slotsInUse >= 0.8 * slotsMaxNow(ceiling, settings);
}

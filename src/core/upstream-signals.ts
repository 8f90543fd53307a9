import type { InstantMs } from './words/ids.ts';
import type { UpstreamSignal } from './words/signal.ts';
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
import { noteServed as pauseServed, pauseFor } from './parts/pause.ts';
import { drain, lowerToHint } from './parts/rates.ts';
import { noteTaken, noteRepeatRefusal } from './parts/repeat-refusals.ts';
import { atUpstream, slotsLearned } from './capacity.ts';
import type { GroupState, Lease } from './state.ts';
import { noteSignal } from './stats.ts';
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
 * - Egress: nothing, not even a row: it is about where calls come from, and every one may be refused so.
 * - Quota, and what never fits: nothing, because other calls may fare better.
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
  const { settings, controls, totals } = state;
  const { ceiling, breaker, pause, rates } = controls;
  const { id: leaseId, callableAt: grantedAt } = lease;
  const { kind } = signal;
  // An upstream that asks for no wait at all after a refusal does not know how long it will last.
  const retryAfterMs = signal.retryAfterMs === 0 ? null : signal.retryAfterMs;
  const before = lessonOf(state);
  state.talliesDirtyAt ??= now;
  noteSignal(lease, signal);
  lease.hasAnswer = true;
  for (const hint of signal.hints) lowerToHint(rates, settings.rates, hint, NOTHING, now);
  if (kind === 'served') {
    applyServed(state, lease, retryAfterMs, now);
    // Most of what is served teaches nothing that is worth a row.
    if (lessonOf(state) !== before) state.isControlsDirty = true;
    return;
  }
  totals.refusals[kind] = (totals.refusals[kind] ?? 0) + 1;
  if (kind === 'egress') return;
  state.isControlsDirty = true;
  // What is unclaimed after a reset may be there: without it the upstream would seem to take next to nothing.
  const othersInUse = atUpstream(state) + state.unclaimed.slots;
  const call = { ticketId: lease.ticketId, grantedAt, othersInUse };
  const failed = { leaseId, grantedAt, retryAfterMs };
  const pauseOnce = (isLongWindow: boolean): void => {
    if (!isRepeat) pauseFor(pause, { grantedAt, retryAfterMs, isLongWindow }, now);
  };
  switch (kind) {
    case 'concurrency':
      noteRepeatRefusal(state.repeatRefusals, lease.ticketId, now);
      lease.isLagging = isLag(state, lease, signal, othersInUse, now);
      if (lease.isLagging) return;
      return lowerCeiling(state, call, signal.slotsMax, now);
    case 'overload':
      noteOverload(ceiling, settings, call, now);
      breakerFailed(breaker, failed, now);
      if (retryAfterMs !== null) pauseOnce(false);
      return;
    case 'error':
      return breakerFailed(breaker, failed, now);
    case 'requests':
    case 'tokens':
      if (!isRepeat) drain(rates, settings.rates, kind, now);
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
    case 'quota':
    case 'never_fits':
      return;
  }
}

/** Learns from a refusal for concurrency that no lag explains. */
function lowerCeiling(
  state: GroupState,
  call: RefusedCall,
  namedSlotsMax: number | null,
  now: InstantMs,
): void {
  const { settings, controls } = state;
  const { ceiling, lag } = controls;
  const before = slotsProven(ceiling, settings, now);
  const othersInUse = call.othersInUse + slotsLagging(state, now);
  noteConcurrencyRefusal(ceiling, settings, { ...call, othersInUse, namedSlotsMax }, now);
  if (slotsLearned(state) < before) noteFewer(lag, call.ticketId);
}

/** Names what was learned of the upstream so far, as far as it decides anything. */
function lessonOf(state: GroupState): string {
  const { pause, breaker } = state.controls;
  return [slotsLearned(state), pause.until, pause.openMs, breaker.phase, breaker.openUntil].join();
}

/** @param waitMs how long the next calls had better wait, because a limit is nearly used up */
function applyServed(state: GroupState, lease: Lease, waitMs: number | null, now: InstantMs): void {
  const { settings, controls } = state;
  const { id: leaseId, callableAt: grantedAt, slotsAtGrant } = lease;
  const slotsInUse = atUpstream(state);
  ceilingServed(controls.ceiling, settings, { grantedAt, slotsAtGrant, slotsInUse }, now);
  breakerServed(controls.breaker, { leaseId, grantedAt }, now);
  noteTakenAfterGap(state, lease);
  noteTaken(state.repeatRefusals, grantedAt);
  pauseServed(controls.pause, grantedAt);
  if (waitMs === null) return;
  pauseFor(controls.pause, { grantedAt, retryAfterMs: waitMs, isLongWindow: false }, now);
}

/**
 * Notes a grant: while the breaker is not closed, it is a probe. But for one that passes though the
 * breaker allows none: a nested call, or any in a dry run.
 */
export function noteGranted({ controls }: GroupState, { id }: Lease, now: InstantMs): void {
  if (breakerAllows(controls.breaker, now)) breakerGranted(controls.breaker, id);
}

/**
 * Notes that a call ended well. Most groups hear of it only now, and without it a few failures among many
 * calls would seem to be all there is. Not worth a row of its own: that is written when something fails.
 */
export function noteSuccess(state: GroupState, lease: Lease, now: InstantMs): void {
  const { controls, repeatRefusals } = state;
  if (lease.hasAnswer) return;
  const { id: leaseId, callableAt: grantedAt, slotsAtGrant } = lease;
  breakerServed(controls.breaker, { leaseId, grantedAt }, now);
  noteAccepted(controls.ceiling.evidence, { grantedAt, slotsAtGrant }, now);
  noteTakenAfterGap(state, lease);
  noteTaken(repeatRefusals, grantedAt);
}

/** Notes the end of a lease. `isLost`: its holder was not heard of any more. */
export function noteEnded(state: GroupState, lease: Lease, isLost: boolean, now: InstantMs): void {
  breakerEnded(state.controls.breaker, lease.id, isLost, now);
}

/**
 * Whether the group wants to hear at the headers that a call was served: it probes its upstream, or could
 * learn that it takes more. All others spare the message.
 */
export function wantsServed(state: GroupState, now: InstantMs): boolean {
  const { settings, controls } = state;
  const { ceiling, breaker, pause } = controls;
  if (breaker.phase !== 'closed' || hasFailedLately(breaker, now)) return true;
  if (pause.openMs > 0 || isInDoubt(ceiling.evidence, now)) return true;
  if (!settings.isAdaptive || (settings.isHard && ceiling.slots === null)) return false;
  return state.slotsInUse >= 0.8 * slotsMaxNow(ceiling, settings);
}

import { after, earlier, instant, type InstantMs, type LeaseId } from '../words/ids.ts';
import { PROBE_MAX_MS, PROBE_MIN_MS } from '../words/settings.ts';
import type { EjectingRefusal } from '../words/signal.ts';

/** When a member receives no calls although it has slots: pauses after refusals, and ejections (outages). */

/**
 * A pause that the upstream asked for. Until its end nothing is granted, and calls in flight continue. After it the
 * slots return a few at a time. Otherwise all waiters would meet the next refusal together.
 *
 * Single calls probe a long pause, because upstreams name waits of days by mistake. The first probe comes after a
 * minute, each later one after twice the previous time, at most 15 minutes. A served probe ends the pause.
 */
export interface Pause {
  /** Nothing is granted before this. 0 if there was no pause yet. */
  until: InstantMs;
  /** The instant of the last refusal that began or extended a pause. */
  notedAt: InstantMs;
  /** Length of the last pause without a length from the upstream. 0 if a call was served since. */
  openMs: number;
  /** The upstream's message, if it may be shown. null if it sent none. */
  words: string | null;
  /** The upstream was overloaded. Otherwise its own limit was used up. */
  isOverload: boolean;
  probeAt: InstantMs;
  /** The wait before the last probe. 0 if the pause is not probed. */
  waitMs: number;
  probe: LeaseId | null;
}

interface PauseCause {
  readonly grantedAt: InstantMs;
  /** How long the upstream asks to wait. null if it does not. */
  readonly retryAfterMs: number | null;
  /** The limit of a day or longer is used up, so waits last hours. */
  readonly isLongWindow: boolean;
  /** The upstream's message. Absent if it sent none that may be shown. */
  readonly words?: string | null;
  /** The upstream is overloaded. Absent if its own limit is used up. */
  readonly isOverload?: boolean;
  /** Whether a long pause is probed. Absent means no. */
  readonly isProbed?: boolean;
}

/** First and maximum length of a pause without a length from the upstream. Each is twice as long as the last. */
const OPEN_MIN_MS = 1_000;
const OPEN_MAX_MS = 60_000;
const OPEN_LONG_MIN_MS = 60_000;
const OPEN_LONG_MAX_MS = 600_000;

/** Maximum length that an upstream may ask for. An error of its clock must not stop a group for good. */
const ASKED_MAX_MS = 3_600_000;
const ASKED_LONG_MAX_MS = 31 * 86_400_000;

/** Longer pauses are probed. */
const PROBED_ABOVE_MS = 900_000;

/** The share of the slots that are available right after a pause. It doubles with every step. */
const RAMP_SHARE = 1 / 4;
const RAMP_STEP_MS = 2_000;

/** How long the number of slots is reduced after a pause. */
export const RAMP_MS = 2 * RAMP_STEP_MS;

export function emptyPause(): Pause {
  return {
    until: instant(0),
    notedAt: instant(0),
    openMs: 0,
    words: null,
    isOverload: false,
    ...NO_PROBES,
  };
}

const NO_PROBES = { probeAt: instant(0), waitMs: 0, probe: null };

/**
 * Starts or extends a pause. Never shortens it. Without a length from the upstream, refusals of calls granted before
 * the last refusal have the same cause and change nothing.
 */
export function pauseFor(pause: Pause, cause: PauseCause, now: InstantMs): void {
  const { retryAfterMs, isLongWindow } = cause;
  if (retryAfterMs === null) {
    if (cause.grantedAt <= pause.notedAt && pause.openMs > 0) return;
    const least = isLongWindow ? OPEN_LONG_MIN_MS : OPEN_MIN_MS;
    const most = isLongWindow ? OPEN_LONG_MAX_MS : OPEN_MAX_MS;
    pause.openMs = Math.min(most, Math.max(least, 2 * pause.openMs));
  }
  const askedMs = Math.min(
    retryAfterMs ?? pause.openMs,
    isLongWindow ? ASKED_LONG_MAX_MS : ASKED_MAX_MS,
  );
  const isNew = !isPaused(pause, now);
  if (isNew) Object.assign(pause, { words: null, ...NO_PROBES });
  // While a limit is used up, an overload changes nothing.
  pause.isOverload = cause.isOverload === true && (isNew || pause.isOverload);
  pause.until = instant(Math.max(pause.until, after(now, askedMs)));
  pause.notedAt = now;
  pause.words = cause.words ?? pause.words;
  if (cause.isProbed === true) setProbing(pause, true, now);
}

/** Starts probes of a long pause, or stops them if the group disables probes. */
export function setProbing(pause: Pause, isOn: boolean, now: InstantMs): void {
  if (!isOn) {
    // The probe in flight still counts: the pause ends if it is served, and no other probe may start.
    Object.assign(pause, { waitMs: 0, probeAt: instant(0) });
  } else if (pause.waitMs === 0 && isLong(pause, now)) {
    Object.assign(pause, { waitMs: PROBE_MIN_MS, probeAt: after(now, PROBE_MIN_MS) });
  }
}

/**
 * Notes that the upstream accepted a call. If it was granted after the last refusal, the next pause of unknown length
 * is short again. A served probe ends the pause. A probe that failed by a mistake of its caller shows nothing.
 */
export function noteServed(
  pause: Pause,
  call: { readonly leaseId: LeaseId; readonly grantedAt: InstantMs; readonly isMistake: boolean },
  now: InstantMs,
): void {
  if (call.grantedAt > pause.notedAt) pause.openMs = 0;
  if (pause.probe !== call.leaseId || call.isMistake) return;
  Object.assign(pause, { until: earlier(pause.until, now), ...NO_PROBES });
}

/** Notes a refusal. After a refused probe, the next one waits twice as long. Returns whether it was a probe. */
export function noteRefused(pause: Pause, leaseId: LeaseId, now: InstantMs): boolean {
  if (pause.probe !== leaseId) return false;
  const waitMs = Math.min(PROBE_MAX_MS, 2 * pause.waitMs);
  Object.assign(pause, { waitMs, probeAt: after(now, waitMs), probe: null });
  return true;
}

/** Notes a grant. If a probe is due, the granted call is the probe. */
export function noteGranted(pause: Pause, leaseId: LeaseId, now: InstantMs): void {
  if (mayProbe(pause, now)) pause.probe = leaseId;
  // The pause ended without a served probe.
  else if (pause.waitMs > 0 && !isPaused(pause, now)) Object.assign(pause, NO_PROBES);
}

/** Notes the end of a lease. If a probe ended without an answer, another one follows. */
export function noteEnded(pause: Pause, leaseId: LeaseId): void {
  if (pause.probe === leaseId) pause.probe = null;
}

export function isPaused(pause: Pause, now: InstantMs): boolean {
  return now < pause.until;
}

/** Whether the rest of a pause is long enough to be probed, and to warn the operator. */
export function isLong(pause: Pause, now: InstantMs): boolean {
  return pause.until - now > PROBED_ABOVE_MS;
}

/** Returns when the next call may probe a pause. null if none will, or a probe is in flight. */
export function nextProbeAt({ waitMs, probe, probeAt }: Pause): InstantMs | null {
  return waitMs > 0 && probe === null ? probeAt : null;
}

export function mayProbe(pause: Pause, now: InstantMs): boolean {
  const { waitMs, probe, probeAt } = pause;
  return isPaused(pause, now) && waitMs > 0 && probe === null && now >= probeAt;
}

/** Returns when grants resume: at the next probe or the end of the pause. Not after `now` if the pause is over. */
export function stopsUntil(pause: Pause): InstantMs {
  const { until, waitMs, probe, probeAt } = pause;
  return waitMs > 0 && probe === null ? earlier(until, probeAt) : until;
}

/**
 * Returns how many slots may be in use now: none in a pause, a growing share after it, then `slotsMax`. The probe of a
 * pause may run while calls from before the pause are still in flight.
 */
export function rampSlotsMax(pause: Pause, slotsMax: number, now: InstantMs): number {
  if (isPaused(pause, now)) return mayProbe(pause, now) ? slotsMax : 0;
  if (pause.until === 0) return slotsMax;
  const steps = Math.floor((now - pause.until) / RAMP_STEP_MS);
  if (slotsMax === 0) return 0;
  return Math.min(slotsMax, Math.ceil(slotsMax * RAMP_SHARE) * 2 ** steps);
}

/** Returns when time alone changes `rampSlotsMax`. Infinity if it stays. */
export function nextChangeAt(pause: Pause, slotsMax: number, now: InstantMs): InstantMs {
  if (isPaused(pause, now)) return mayProbe(pause, now) ? pause.until : stopsUntil(pause);
  if (rampSlotsMax(pause, slotsMax, now) >= slotsMax) return instant(Infinity);
  const steps = Math.floor((now - pause.until) / RAMP_STEP_MS);
  return after(pause.until, (steps + 1) * RAMP_STEP_MS);
}

/**
 * Corrects a pause that was noted by a clock that was ahead. Its duration stays. The probe of an earlier instance is
 * forgotten.
 */
export function rebase(pause: Pause, now: InstantMs): void {
  pause.probe = null;
  pause.probeAt = earlier(pause.probeAt, after(now, PROBE_MAX_MS));
  const aheadMs = Math.max(0, pause.notedAt - now);
  pause.notedAt = instant(pause.notedAt - aheadMs);
  pause.until = instant(pause.until - aheadMs);
}

/**
 * Whether a member is ejected, and why. One call at a time probes whether its upstream serves it again. A member that
 * an operator removed from service is disabled by its settings instead.
 */
export interface Outage {
  /** null if the member is not ejected. */
  reason: EjectingRefusal | null;
  /** When it was ejected, or when its last ejection ended. */
  since: InstantMs;
  probeAt: InstantMs;
  /** The wait before the last probe. */
  waitMs: number;
  probe: LeaseId | null;
}

/** Returns the state of a member that is not ejected. `since` is the end of its last ejection. */
export function noOutage(since: InstantMs = instant(0)): Outage {
  return { reason: null, since, probeAt: instant(0), waitMs: 0, probe: null };
}

/**
 * Ejects a member that refused a call which another one served. A refusal from before its last ejection ended does not
 * count. Returns whether the member was ejected.
 */
export function noteBlamed(
  outage: Outage,
  reason: EjectingRefusal,
  refusedAt: InstantMs,
  now: InstantMs,
): boolean {
  if (outage.reason !== null || refusedAt < outage.since) return false;
  const waitMs = PROBE_MIN_MS;
  Object.assign(outage, { reason, since: now, waitMs, probeAt: after(now, waitMs), probe: null });
  return true;
}

/** Notes a refusal. If the call was the probe, the ejection lasts longer. Returns whether it was. */
export function outageRefused(
  outage: Outage,
  reason: EjectingRefusal,
  leaseId: LeaseId,
  now: InstantMs,
): boolean {
  if (outage.reason === null || outage.probe !== leaseId) return false;
  const waitMs = Math.min(PROBE_MAX_MS, 2 * outage.waitMs);
  Object.assign(outage, { reason, waitMs, probeAt: after(now, waitMs), probe: null });
  return true;
}

/** Whether a call may be granted there now, as a normal call or as the probe. */
export function outageAllows({ reason, probe, probeAt }: Outage, now: InstantMs): boolean {
  return reason === null || (probe === null && now >= probeAt);
}

/** Returns when time alone changes `allows`. Infinity if only a result does. */
export function outageChangesAt({ reason, probe, probeAt }: Outage, now: InstantMs): InstantMs {
  return reason !== null && probe === null && now < probeAt ? probeAt : instant(Infinity);
}

/** Notes a grant, which is the probe while the member is ejected. */
export function outageGranted(outage: Outage, leaseId: LeaseId): void {
  if (outage.reason !== null) outage.probe ??= leaseId;
}

/** Notes a served call. Only a served probe ends an ejection. */
export function outageServed(outage: Outage, leaseId: LeaseId, now: InstantMs): void {
  if (outage.reason === null || outage.probe !== leaseId) return;
  Object.assign(outage, noOutage(now));
}

/** Notes the end of a lease. If a probe ended without an answer, another one follows. */
export function outageEnded(outage: Outage, leaseId: LeaseId): void {
  if (outage.probe === leaseId) outage.probe = null;
}

/** Corrects times that were noted by a clock that was ahead. The probe of an earlier instance is forgotten. */
export function rebaseOutage(outage: Outage, now: InstantMs): void {
  outage.probe = null;
  outage.since = earlier(outage.since, now);
  outage.probeAt = earlier(outage.probeAt, after(now, PROBE_MAX_MS));
}

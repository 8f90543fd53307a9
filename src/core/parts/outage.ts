import { after, earlier, instant, type InstantMs, type LeaseId } from '../words/ids.ts';
import { PROBE_MAX_MS, PROBE_MIN_MS } from '../words/settings.ts';
import type { EjectingRefusal } from '../words/signal.ts';

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
export function noteRefused(
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
export function allows({ reason, probe, probeAt }: Outage, now: InstantMs): boolean {
  return reason === null || (probe === null && now >= probeAt);
}

/** Returns when time alone changes `allows`. Infinity if only a result does. */
export function nextChangeAt({ reason, probe, probeAt }: Outage, now: InstantMs): InstantMs {
  return reason !== null && probe === null && now < probeAt ? probeAt : instant(Infinity);
}

/** Notes a grant, which is the probe while the member is ejected. */
export function noteGranted(outage: Outage, leaseId: LeaseId): void {
  if (outage.reason !== null) outage.probe ??= leaseId;
}

/** Notes a served call. Only a served probe ends an ejection. */
export function noteServed(outage: Outage, leaseId: LeaseId, now: InstantMs): void {
  if (outage.reason === null || outage.probe !== leaseId) return;
  Object.assign(outage, noOutage(now));
}

/** Notes the end of a lease. If a probe ended without an answer, another one follows. */
export function noteEnded(outage: Outage, leaseId: LeaseId): void {
  if (outage.probe === leaseId) outage.probe = null;
}

/** Corrects times that were noted by a clock that was ahead. The probe of an earlier instance is forgotten. */
export function rebase(outage: Outage, now: InstantMs): void {
  outage.probe = null;
  outage.since = earlier(outage.since, now);
  outage.probeAt = earlier(outage.probeAt, after(now, PROBE_MAX_MS));
}

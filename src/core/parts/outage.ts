import { after, earlier, instant, type InstantMs, type LeaseId } from '../words/ids.ts';
import { PROBE_MAX_MS, PROBE_MIN_MS } from '../words/settings.ts';
import type { EjectingRefusal } from '../words/signal.ts';

/**
 * Whether a member is out, and why. One call at a time probes whether its upstream serves it again. A member that an
 * operator took out is switched off by its settings.
 */
export interface Outage {
  /** Null: it is in. */
  reason: EjectingRefusal | null;
  /** Since when it is out; or in, as far as it was out before. */
  since: InstantMs;
  /** The instant from which a call may probe it. */
  probeAt: InstantMs;
  /** How long the last probe was waited for. */
  waitMs: number;
  /** The lease of the probe that is under way. */
  probe: LeaseId | null;
}

/** A member that is in, and since when if it was out before. */
export function noOutage(since: InstantMs = instant(0)): Outage {
  return { reason: null, since, probeAt: instant(0), waitMs: 0, probe: null };
}

/**
 * Takes a member out for a call that it refused and another one served. The refusal says nothing of one that came back
 * since. Returns whether it is out by this.
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

/** Notes a refusal: a member that is out stays so for longer if it was its probe that was refused. Returns whether it was. */
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

/** Whether a call may be granted there now: as any, or as the probe. */
export function allows({ reason, probe, probeAt }: Outage, now: InstantMs): boolean {
  return reason === null || (probe === null && now >= probeAt);
}

/** Finds when `allows` next changes by itself; Infinity: only by a result. */
export function nextChangeAt({ reason, probe, probeAt }: Outage, now: InstantMs): InstantMs {
  return reason !== null && probe === null && now < probeAt ? probeAt : instant(Infinity);
}

/** Notes a grant: while the member is out it is the probe. */
export function noteGranted(outage: Outage, leaseId: LeaseId): void {
  if (outage.reason !== null) outage.probe ??= leaseId;
}

/** Notes that a call was served. Of one that is out only its probe brings it back. */
export function noteServed(outage: Outage, leaseId: LeaseId, now: InstantMs): void {
  if (outage.reason === null || outage.probe !== leaseId) return;
  Object.assign(outage, noOutage(now));
}

/** Notes the end of a lease. A probe that ended without an answer is followed by another. */
export function noteEnded(outage: Outage, leaseId: LeaseId): void {
  if (outage.probe === leaseId) outage.probe = null;
}

/** Brings what a clock that was ahead has noted back to now. The probe of an instance before is not waited for. */
export function rebase(outage: Outage, now: InstantMs): void {
  outage.probe = null;
  outage.since = earlier(outage.since, now);
  outage.probeAt = earlier(outage.probeAt, after(now, PROBE_MAX_MS));
}

import { after, earlier, instant, type InstantMs, type LeaseId } from '../words/ids.ts';
import { OUT_MAX_MS, OUT_MIN_MS } from '../words/settings.ts';
import type { RefusalKind } from '../words/signal.ts';

/** The refusals that take a member out: whoever calls there next would be refused as well. */
const TAKING_OUT = ['unauthorized', 'quota', 'egress'] as const;

type OutReason = (typeof TAKING_OUT)[number];

/**
 * Whether a member is out, and why. One call at a time probes whether its upstream serves it again. A member that an
 * operator took out is switched off by its settings.
 */
export interface Outage {
  /** Null: it is in. */
  reason: OutReason | null;
  since: InstantMs;
  /** The instant from which a call may probe it. */
  probeAt: InstantMs;
  /** How long the last probe was waited for. */
  waitMs: number;
  /** The lease of the probe that is under way. */
  probe: LeaseId | null;
}

/** A member that is in. */
export function noOutage(): Outage {
  return { reason: null, since: instant(0), probeAt: instant(0), waitMs: 0, probe: null };
}

/** Whether a refusal takes a member out. */
export function takesOut(kind: RefusalKind | 'served'): kind is (typeof TAKING_OUT)[number] {
  return (TAKING_OUT as readonly string[]).includes(kind);
}

/** Takes a member out for a refusal. One that is out already stays so for longer if its probe was refused. */
export function noteRefused(
  outage: Outage,
  reason: OutReason,
  leaseId: LeaseId,
  now: InstantMs,
): void {
  const isProbe = outage.probe === leaseId;
  if (outage.reason !== null && !isProbe) return;
  const waitMs = isProbe ? Math.min(OUT_MAX_MS, 2 * outage.waitMs) : OUT_MIN_MS;
  const since = outage.reason === null ? now : outage.since;
  Object.assign(outage, { reason, since, waitMs, probeAt: after(now, waitMs), probe: null });
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

/** Notes that a call was served. Of one that is out only its probe brings it back. Returns whether it did. */
export function noteServed(outage: Outage, leaseId: LeaseId): boolean {
  if (outage.reason === null || outage.probe !== leaseId) return false;
  Object.assign(outage, noOutage());
  return true;
}

/** Notes the end of a lease. A probe that ended without an answer is followed by another. */
export function noteEnded(outage: Outage, leaseId: LeaseId): void {
  if (outage.probe === leaseId) outage.probe = null;
}

/** Brings what a clock that was ahead has noted back to now. The probe of an instance before is not waited for. */
export function rebase(outage: Outage, now: InstantMs): void {
  outage.probe = null;
  outage.since = earlier(outage.since, now);
  outage.probeAt = earlier(outage.probeAt, after(now, OUT_MAX_MS));
}

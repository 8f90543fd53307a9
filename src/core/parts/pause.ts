import { after, instant, type InstantMs } from '../words/ids.ts';

/**
 * A pause that the upstream asked for. Until its end nothing is granted; what is in flight goes on. After
 * it the slots come back a few at a time, or everybody who waited would meet the next refusal together.
 */
export interface Pause {
  /** Nothing is granted before this; 0: there was no pause yet. */
  until: InstantMs;
  /** The instant of the last refusal that began or extended a pause. */
  notedAt: InstantMs;
  /** How long the last pause was whose length the upstream left open; 0: since then a call was served. */
  openMs: number;
}

/** A refusal that is to stop the group for a while. */
export interface PauseCause {
  /** The grant of the refused call. */
  readonly grantedAt: InstantMs;
  /** How long to wait, as the upstream says. Null: it does not. */
  readonly retryAfterMs: number | null;
  /** The limit of a day or longer is used up: waits are measured in hours. */
  readonly isLongWindow: boolean;
}

/** How long a pause is at first, and at the most, where the upstream does not say; each is twice the last. */
const OPEN_MIN_MS = 1_000;
const OPEN_MAX_MS = 60_000;
const OPEN_LONG_MIN_MS = 60_000;
const OPEN_LONG_MAX_MS = 600_000;

/** Maximum that an upstream may ask for: a slip of its clock must not stop a group for good. */
const ASKED_MAX_MS = 3_600_000;
const ASKED_LONG_MAX_MS = 31 * 86_400_000;

/** The part of the slots that a pause ends with; they double with every step. */
const RAMP_SHARE = 1 / 4;
const RAMP_STEP_MS = 2_000;

/** How long after a pause fewer slots are in use than before it. */
export const RAMP_MS = 2 * RAMP_STEP_MS;

/** A group that was never paused. */
export function emptyPause(): Pause {
  return { until: instant(0), notedAt: instant(0), openMs: 0 };
}

/**
 * Pauses the group, or extends its pause; never shortens it. Where the upstream does not say how long,
 * calls that were granted before the last refusal tell of the same jam and change nothing.
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
  pause.until = instant(Math.max(pause.until, after(now, askedMs)));
  pause.notedAt = now;
}

/** Notes that the upstream took a call: if it was granted after the last refusal, the jam is over. */
export function noteServed(pause: Pause, grantedAt: InstantMs): void {
  if (grantedAt > pause.notedAt) pause.openMs = 0;
}

export function isPaused(pause: Pause, now: InstantMs): boolean {
  return now < pause.until;
}

/** Computes how many slots may be in use now: none in a pause, a growing part after it, then `slotsMax`. */
export function rampSlotsMax(pause: Pause, slotsMax: number, now: InstantMs): number {
  if (isPaused(pause, now)) return 0;
  if (pause.until === 0) return slotsMax;
  const steps = Math.floor((now - pause.until) / RAMP_STEP_MS);
  if (slotsMax === 0) return 0;
  return Math.min(slotsMax, Math.ceil(slotsMax * RAMP_SHARE) * 2 ** steps);
}

/** Finds when `rampSlotsMax` next changes by itself; Infinity: it stays. */
export function nextChangeAt(pause: Pause, slotsMax: number, now: InstantMs): InstantMs {
  if (isPaused(pause, now)) return pause.until;
  if (rampSlotsMax(pause, slotsMax, now) >= slotsMax) return instant(Infinity);
  const steps = Math.floor((now - pause.until) / RAMP_STEP_MS);
  return after(pause.until, (steps + 1) * RAMP_STEP_MS);
}

/** Brings what a clock that was ahead has noted back to now; it lasts as long as it was to. */
export function rebase(pause: Pause, now: InstantMs): void {
  const aheadMs = Math.max(0, pause.notedAt - now);
  pause.notedAt = instant(pause.notedAt - aheadMs);
  pause.until = instant(pause.until - aheadMs);
}

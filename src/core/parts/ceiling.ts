import { earlier, instant, type InstantMs, type TicketId } from '../words/ids.ts';
import {
  noEvidence,
  noteAccepted,
  rebase as rebaseEvidence,
  weighRefusal,
  type Evidence,
  type ServedCall,
} from './evidence.ts';

/**
 * The number of concurrent calls that the upstream has shown to accept, if that differs from the configured limit.
 *
 * The kind of the last refusal selects one of two controllers.
 *
 * - `tracking`: the upstream refuses calls beyond a fixed number, so the number that it did accept is its limit. From
 *   time to time one more call probes whether the limit has grown.
 * - `aimd`: the upstream lacks capacity for all its clients. Its refusals name no exact number, so the limit falls by a
 *   share and grows slowly.
 */
export interface Ceiling {
  /** The learned limit, with its fraction. null if none was learned. */
  slots: number | null;
  mode: 'tracking' | 'aimd';
  lastCutAt: InstantMs;
  /** The call whose refusal caused the last cut. null if there was none. */
  lastCutBy: TicketId | null;
  /** When the limit last rose, and when a probe last began or failed. */
  lastRiseAt: InstantMs;
  lastProbeAt: InstantMs;
  /** How much the next probe adds. */
  step: number;
  /** Calls served under full load since the last probe, and the number required before the next one. */
  servedSinceProbe: number;
  servedBeforeProbe: number;
  /** Whether a call granted after the last rise was served, so the upstream accepts the new number. */
  isRiseProven: boolean;
  readonly evidence: Evidence;
}

export interface CeilingSettings {
  /** The configured or assumed limit. Infinity if there is none. */
  readonly slotsMax: number;
  /** Whether the limit is configured and never exceeded. An assumed limit is a starting point and may grow. */
  readonly isHard: boolean;
  /** If false, nothing more is learned, and earlier lessons stay. */
  readonly isAdaptive: boolean;
}

export interface RefusedCall {
  readonly ticketId: TicketId;
  /** The first instant at which the upstream could have been called. */
  readonly grantedAt: InstantMs;
  /** Slots of the other calls at the upstream. Cooling slots do not count. */
  readonly othersInUse: number;
}

export const SLOTS_LEARNED_MAX = 100_000;

/** For how long after its grant the refusal of a call describes what is in flight now. */
const PROMPT_MS = 2_000;

/** The share of the limit that remains after an overload. */
const OVERLOAD_SHARE = 0.7;

/** How long the limit does not grow after an overload. */
const OVERLOAD_STEADY_MS = 30_000;

/** Minimum share of the limit in use for a served call to prove anything. */
const SATURATED_SHARE = 0.8;

/** Minimum time between two rises, in which a rise may fail. */
const RISE_EVERY_MS = 2_000;

/** Minimum time before a probe, for each call that must be served first. It decides if calls are short. */
const PROBE_EVERY_PER_CALL_MS = 600;

/** Maximum time before a probe, however few calls were served. It decides if calls are long. */
const PROBE_EVERY_MAX_MS = 300_000;

/** A cut within this time after a rise is a failed probe. A later cut means that the upstream accepts fewer calls. */
const PROBE_FAILS_WITHIN_MS = 20_000;

/**
 * Number of served calls between two probes. It is low after a cut, which may be a coincidence, and doubles with each
 * failed probe. A failed probe is one refused call, so at most 1 of 53 calls is refused for it.
 */
const SERVED_BEFORE_PROBE_MIN = 8;
const SERVED_BEFORE_PROBE_MAX = 52;

export function emptyCeiling(now: InstantMs): Ceiling {
  return {
    slots: null,
    mode: 'tracking',
    lastCutAt: instant(0),
    lastCutBy: null,
    lastRiseAt: instant(0),
    lastProbeAt: now,
    step: 1,
    servedSinceProbe: 0,
    servedBeforeProbe: SERVED_BEFORE_PROBE_MIN,
    isRiseProven: false,
    evidence: noEvidence(),
  };
}

/** Returns the configured and learned maximum of slots. At least 1, unless 0 is configured. */
export function slotsMaxNow(ceiling: Ceiling, settings: CeilingSettings): number {
  return Math.floor(exactSlots(ceiling, settings));
}

/** Returns the number of slots that the upstream is known to accept, without those that a probe in flight adds. */
export function slotsProven(ceiling: Ceiling, settings: CeilingSettings, now: InstantMs): number {
  const slots = slotsMaxNow(ceiling, settings);
  return isProbing(ceiling, now) ? slots - ceiling.step : slots;
}

/** Whether a refusal now would mean that the last rise failed. */
export function isProbing(
  { lastRiseAt, lastCutAt, isRiseProven }: Ceiling,
  now: InstantMs,
): boolean {
  if (lastRiseAt <= lastCutAt) return false;
  return !isRiseProven || now - lastRiseAt < PROBE_FAILS_WITHIN_MS;
}

/** Ends a probe, and returns to the number that the upstream is known to accept. */
export function failProbe(
  ceiling: Ceiling,
  settings: CeilingSettings,
  ticketId: TicketId,
  now: InstantMs,
): void {
  if (!isLearning(settings)) return;
  lower(ceiling, settings, slotsProven(ceiling, settings, now));
  noteCut(ceiling, ticketId, now);
}

/** Whether a refusal describes what is in flight now. */
export function isPrompt(grantedAt: InstantMs, now: InstantMs): boolean {
  return now - grantedAt <= PROMPT_MS;
}

/**
 * Learns from a refusal for too many concurrent calls: the number that the upstream accepted is its limit. Each refusal
 * of a burst counts and sees fewer other calls, so the last one leaves exactly the accepted number. A single refusal
 * does not lower the limit below what was served lately (see `evidence.ts`). A refusal without other calls in flight
 * shows no limit.
 *
 * @param namedSlotsMax the limit, if the refusal names it
 */
export function noteConcurrencyRefusal(
  ceiling: Ceiling,
  settings: CeilingSettings,
  call: RefusedCall & { readonly namedSlotsMax: number | null },
  now: InstantMs,
): void {
  if (!isPrompt(call.grantedAt, now)) return noteOverload(ceiling, settings, call, now);
  if (!isLearning(settings)) return;
  const believed = call.othersInUse === 0 ? Infinity : weighRefusal(ceiling.evidence, call, now);
  const accepted = Math.min(believed, call.namedSlotsMax ?? Infinity);
  // It proves nothing, and a probe in flight continues.
  if (believed > call.othersInUse && accepted >= exactSlots(ceiling, settings)) return;
  lower(ceiling, settings, accepted);
  ceiling.mode = 'tracking';
  ceiling.lastProbeAt = now;
  ceiling.servedSinceProbe = 0;
  if (call.grantedAt > ceiling.lastCutAt) noteCut(ceiling, call.ticketId, now);
}

function noteCut(ceiling: Ceiling, ticketId: TicketId, now: InstantMs): void {
  ceiling.servedBeforeProbe = isProbing(ceiling, now)
    ? Math.min(SERVED_BEFORE_PROBE_MAX, 2 * ceiling.servedBeforeProbe)
    : SERVED_BEFORE_PROBE_MIN;
  ceiling.lastProbeAt = now;
  ceiling.servedSinceProbe = 0;
  ceiling.isRiseProven = false;
  ceiling.lastCutAt = now;
  ceiling.lastCutBy = ticketId;
}

/**
 * Learns from an overload, and cuts the limit by a share. All calls granted before the cut describe the same overload,
 * so they cut only once. Another refusal of the same call adds nothing, because that call may be refused in any case.
 */
export function noteOverload(
  ceiling: Ceiling,
  settings: CeilingSettings,
  { ticketId, grantedAt, othersInUse }: RefusedCall,
  now: InstantMs,
): void {
  if (!isLearning(settings) || grantedAt <= ceiling.lastCutAt) return;
  if (ticketId === ceiling.lastCutBy) return;
  const limit = exactSlots(ceiling, settings);
  const from = Number.isFinite(limit) ? limit : othersInUse + 1;
  lower(ceiling, settings, from * OVERLOAD_SHARE);
  ceiling.mode = 'aimd';
  ceiling.lastCutAt = now;
  ceiling.lastCutBy = ticketId;
}

/** Learns from a served call. If all slots are in use, the true limit may be higher. */
export function noteServed(
  ceiling: Ceiling,
  settings: CeilingSettings,
  call: ServedCall & { readonly slotsInUse: number },
  now: InstantMs,
): void {
  noteAccepted(ceiling.evidence, call, now);
  const { grantedAt, slotsInUse } = call;
  if (!settings.isAdaptive || (settings.isHard && ceiling.slots === null)) return;
  const limit = slotsMaxNow(ceiling, settings);
  if (limit === 0 || slotsInUse < SATURATED_SHARE * limit) return;
  if (ceiling.mode === 'aimd') {
    if (now - ceiling.lastCutAt < OVERLOAD_STEADY_MS) return;
    // One more slot for each full set of served calls.
    return raise(ceiling, settings, exactSlots(ceiling, settings) + 1 / limit);
  }
  ceiling.servedSinceProbe += 1;
  const isOfRise = grantedAt >= ceiling.lastRiseAt && call.slotsAtGrant > limit - ceiling.step;
  if (isOfRise) ceiling.isRiseProven = true;
  probe(ceiling, settings, limit, now);
}

function probe(ceiling: Ceiling, settings: CeilingSettings, limit: number, now: InstantMs): void {
  const sinceMs = now - ceiling.lastProbeAt;
  const isClimbing = ceiling.lastRiseAt > ceiling.lastCutAt;
  const isDue = isClimbing
    ? ceiling.isRiseProven && sinceMs >= RISE_EVERY_MS
    : isProbeDue(ceiling, sinceMs);
  if (!isDue) return;
  ceiling.step = isClimbing ? Math.min(2 * ceiling.step, Math.max(1, Math.floor(limit / 2))) : 1;
  ceiling.lastProbeAt = now;
  ceiling.lastRiseAt = now;
  ceiling.servedSinceProbe = 0;
  ceiling.isRiseProven = false;
  raise(ceiling, settings, limit + ceiling.step);
  if (ceiling.slots === null) ceiling.isRiseProven = true;
}

function isProbeDue({ servedSinceProbe, servedBeforeProbe }: Ceiling, sinceMs: number): boolean {
  if (sinceMs >= PROBE_EVERY_MAX_MS) return true;
  if (sinceMs < servedBeforeProbe * PROBE_EVERY_PER_CALL_MS) return false;
  return servedSinceProbe >= servedBeforeProbe;
}

/**
 * Whether anything is learned. Not for a limit of 0: a share of it is 0 too, and would stay after it is raised, because
 * no call is served at 0.
 */
function isLearning({ isAdaptive, slotsMax }: CeilingSettings): boolean {
  return isAdaptive && slotsMax > 0;
}

function lower(ceiling: Ceiling, settings: CeilingSettings, slots: number): void {
  const limit = exactSlots(ceiling, settings);
  ceiling.slots = Math.min(limit, Math.max(1, slots));
}

function raise(ceiling: Ceiling, settings: CeilingSettings, slots: number): void {
  // At the configured limit nothing is left to learn, and a later change of it applies in full.
  const isBack = settings.isHard && slots >= settings.slotsMax;
  ceiling.slots = isBack ? null : Math.min(SLOTS_LEARNED_MAX, slots);
}

function exactSlots({ slots }: Ceiling, { slotsMax, isHard }: CeilingSettings): number {
  if (slotsMax === 0) return 0;
  if (slots === null) return slotsMax;
  return isHard ? Math.min(slots, slotsMax) : slots;
}

/** Corrects times that were noted by a clock that was ahead. */
export function rebase(ceiling: Ceiling, now: InstantMs): void {
  ceiling.lastCutAt = earlier(ceiling.lastCutAt, now);
  ceiling.lastRiseAt = earlier(ceiling.lastRiseAt, now);
  ceiling.lastProbeAt = earlier(ceiling.lastProbeAt, now);
  rebaseEvidence(ceiling.evidence, now);
}

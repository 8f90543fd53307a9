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
 * How many calls at once the upstream has shown to take, as far as that differs from what is configured.
 *
 * Two controllers, chosen by the kind of the last refusal. `tracking`: the upstream refuses what is too
 * much at once, so what it did accept is its limit; now and then one call more probes whether that has
 * grown. `aimd`: the upstream is short of capacity for everybody; its refusals say nothing exact, so the
 * limit is cut by a part and grows slowly.
 */
export interface Ceiling {
  /** The learned limit, with its fraction; null: none was learned. */
  slots: number | null;
  mode: 'tracking' | 'aimd';
  lastCutAt: InstantMs;
  /** The call whose refusal that was; null: there was none. */
  lastCutBy: TicketId | null;
  /** The last rise, and the last time that a probe began or failed. */
  lastRiseAt: InstantMs;
  lastProbeAt: InstantMs;
  /** How much the next probe adds. */
  step: number;
  /** Calls served under full load since the last probe, and how many there must be before the next. */
  servedSinceProbe: number;
  servedBeforeProbe: number;
  /** A call that was granted after the last rise was served: the upstream takes that much. */
  isRiseProven: boolean;
  /** Whether a refusal for concurrency is to be believed. */
  readonly evidence: Evidence;
}

export interface CeilingSettings {
  /** The configured limit, or the one assumed. Infinity: none. */
  readonly slotsMax: number;
  /** Configured: never exceeded. An assumed limit is a starting point and grows. */
  readonly isHard: boolean;
  /** False: nothing is learned any more; what was learned stays. */
  readonly isAdaptive: boolean;
}

/** A refused call, and what was in flight beside it. */
export interface RefusedCall {
  readonly ticketId: TicketId;
  /** The first instant at which the upstream could have been called. */
  readonly grantedAt: InstantMs;
  /** Slots of the other calls that are at the upstream. Not of those that have ended and cool down. */
  readonly othersInUse: number;
}

/** Maximum slots that are learned, whatever is served. */
export const SLOTS_LEARNED_MAX = 100_000;

/** How long after its grant a call's refusal tells of what is in flight now. */
const PROMPT_MS = 2_000;

/** The part of the limit that overload leaves. */
const OVERLOAD_SHARE = 0.7;

/** How long after overload the limit does not grow. */
const OVERLOAD_STEADY_MS = 30_000;

/** Minimum part of the limit in use for a served call to prove anything. */
const SATURATED_SHARE = 0.8;

/** How long a rise has to fail in, before the next. */
const RISE_EVERY_MS = 2_000;

/** How long a probe waits for each call that must be served before it: it tells where calls are short. */
const PROBE_EVERY_PER_CALL_MS = 600;

/** How long a probe waits at the most, whatever was served: it tells where calls take long. */
const PROBE_EVERY_MAX_MS = 300_000;

/** How long after a rise a cut is the probe that failed; after it the upstream has less. */
const PROBE_FAILS_WITHIN_MS = 20_000;

/**
 * Minimum of calls served between two probes: few after a cut, because it may have been a chance, twice as many with
 * each probe that fails. A failed probe is one refused call, so at the most 1 in 53 is refused for it.
 */
const SERVED_BEFORE_PROBE_MIN = 8;
const SERVED_BEFORE_PROBE_MAX = 52;

/** A group that has learned nothing. */
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

/** Computes the maximum slots by what is configured and learned: at least 1, unless 0 is configured. */
export function slotsMaxNow(ceiling: Ceiling, settings: CeilingSettings): number {
  return Math.floor(exactSlots(ceiling, settings));
}

/** Computes how many of them the upstream is known to take: not those by which a probe under way exceeds that. */
export function slotsProven(ceiling: Ceiling, settings: CeilingSettings, now: InstantMs): number {
  const slots = slotsMaxNow(ceiling, settings);
  return isProbing(ceiling, now) ? slots - ceiling.step : slots;
}

/** Whether a refusal now would be the failure of the last rise. */
export function isProbing(
  { lastRiseAt, lastCutAt, isRiseProven }: Ceiling,
  now: InstantMs,
): boolean {
  if (lastRiseAt <= lastCutAt) return false;
  return !isRiseProven || now - lastRiseAt < PROBE_FAILS_WITHIN_MS;
}

/** Ends a probe: goes back to what the upstream is known to take. */
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

/** Whether a refusal tells of what is in flight now. */
export function isPrompt(grantedAt: InstantMs, now: InstantMs): boolean {
  return now - grantedAt <= PROMPT_MS;
}

/**
 * Learns from a refusal because too many were in flight: what the upstream has accepted is its limit. Every
 * refusal of a burst counts, each sees fewer others, and the last one leaves exactly what was accepted.
 * A refusal that stands alone does not lower the limit below what was served lately: see `evidence.ts`.
 * Beside nobody it says nothing of how many at once are too many.
 *
 * @param namedSlotsMax the limit, where the refusal tells it
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
  // It proves nothing, and a probe that is under way goes on.
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
 * Learns from an overload: cuts the limit by a part, once for all calls that were granted before the
 * cut, because they tell of the same jam. Nor does the call that it was cut for bring any news: it may be
 * refused whatever happens.
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

/** Learns from a call that was served: where all slots are in use, the limit may be higher than was thought. */
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
    // One slot more each time that as many calls were served as there are slots.
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
 * Whether anything is learned. Of a limit of 0 not: a part of it is 0 too, and would stay when it is raised,
 * because nothing is served at it.
 */
function isLearning({ isAdaptive, slotsMax }: CeilingSettings): boolean {
  return isAdaptive && slotsMax > 0;
}

function lower(ceiling: Ceiling, settings: CeilingSettings, slots: number): void {
  const limit = exactSlots(ceiling, settings);
  ceiling.slots = Math.min(limit, Math.max(1, slots));
}

function raise(ceiling: Ceiling, settings: CeilingSettings, slots: number): void {
  // Back at what is configured nothing is left to know, and a later change of it counts in full.
  const isBack = settings.isHard && slots >= settings.slotsMax;
  ceiling.slots = isBack ? null : Math.min(SLOTS_LEARNED_MAX, slots);
}

function exactSlots({ slots }: Ceiling, { slotsMax, isHard }: CeilingSettings): number {
  if (slotsMax === 0) return 0;
  if (slots === null) return slotsMax;
  return isHard ? Math.min(slots, slotsMax) : slots;
}

/** Brings what a clock that was ahead has noted back to now. */
export function rebase(ceiling: Ceiling, now: InstantMs): void {
  ceiling.lastCutAt = earlier(ceiling.lastCutAt, now);
  ceiling.lastRiseAt = earlier(ceiling.lastRiseAt, now);
  ceiling.lastProbeAt = earlier(ceiling.lastProbeAt, now);
  rebaseEvidence(ceiling.evidence, now);
}

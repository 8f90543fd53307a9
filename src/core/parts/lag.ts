import { earlier, instant, type InstantMs, type TicketId } from '../words/ids.ts';

/**
 * Learns how much longer the upstream counts a call than the group does. At full use, a call that follows too soon
 * after another one has ended is refused. So slots cool down after their calls. There is no cooldown until a refusal
 * shows a lag, and then it is about as short as the upstream accepts.
 *
 * The **gap** of a call is the time between its start and the end of those calls that leave it no room if they still
 * count. A refusal means that the lag is longer than the gap, or that the upstream accepts fewer calls. The cooldown
 * grows in two steps to its maximum. If that does not help, there is no lag. So a lag does not lower the ceiling.
 */
export interface Lag extends KnownLag {
  /** Calls accepted in a row after a gap shorter than the cooldown, and the longest of these gaps. */
  taken: number;
  takenMs: number;
  /** Calls accepted after any gap since the last probe, and the number required before the next one. */
  served: number;
  servedBeforeProbe: number;
  /** The last refusal that counted as a lag, and the call whose refusal last raised the cooldown. */
  refusedAt: InstantMs;
  raisedBy: TicketId | null;
  /** The evidence for a lower ceiling. null if calls like the refused ones were accepted since. */
  doubt: LagDoubt | null;
  /**
   * Cooldown and gap at the last time that all slots, including those that may still have counted, were seen to be
   * accepted. Later refusals may also mean a lower ceiling.
   */
  sure: KnownLag;
  /** How often that was seen since the last refusal. */
  fullSeen: number;
  /** When the doubt was last confirmed. For a while after that, no refusal counts as a lag. */
  notCuredAt: InstantMs;
}

interface KnownLag {
  /** The cooldown in force, the shortest one known to be accepted. 0 if there is none. */
  ms: number;
  /** The longest refused gap for which no shorter gap was accepted. */
  refusedMs: number;
}

/** A series of refusals without an accepted call that had as many others in flight. */
interface LagDoubt {
  /** The lowest number of slots at the upstream among the refused calls. */
  readonly slots: number;
  /** Number of refusals, except those of calls sent before the cooldown was raised. */
  readonly times: number;
  /** How often the cooldown was raised since a call with fewer others in flight was accepted. */
  raises: number;
  /** Cooldown and gap before the first of these refusals. */
  readonly before: KnownLag;
}

interface GappedCall {
  readonly grantedAt: InstantMs;
  /** Slots at the upstream when it was granted, including its own. */
  readonly slotsAtGrant: number;
  /** Infinity if no ended call can have taken its room. */
  readonly gapMs: number;
}

interface LagRefusedCall extends GappedCall {
  readonly ticketId: TicketId;
}

export const LAG_MAX_MS = 1_000;

/**
 * The first cooldown after a refusal. The second step is the maximum, so that a lag costs each call at most two
 * attempts.
 */
const FIRST_MS = 200;

/** By how much the cooldown exceeds a refused gap. */
const RAISE = 1.5;
const RAISE_MIN_MS = 50;

/** The cooldown counts as near to the longest refused gap within these bounds. */
const NEAR_MS = 4;
const NEAR_SHARE = 0.1;

/** The share of the cooldown that is probed once it is near. The lag may have become shorter. */
const SHRINK = 0.9;

/** Minimum useful cooldown. */
const LEAST_MS = 4;

/**
 * Number of calls that prove a shorter cooldown, and one that was refused before. More than one, because a busy machine
 * receives ends late.
 */
const TAKEN_MIN = 2;
const TAKEN_AGAIN_MIN = 8;

/**
 * Number of accepted calls before a probe, and before a probe of a gap that was refused before. The latter doubles with
 * each failure. A failed probe is one refused call.
 */
const SERVED_BEFORE_PROBE = 4;
const SERVED_BEFORE_SHRINK_MIN = 64;
const SERVED_BEFORE_SHRINK_MAX = 512;

/** Number of such refusals that prove a lower ceiling, even if none of them met the longest cooldown. */
const DOUBTED_MAX = 4;

/**
 * How often all slots must be seen in use before the lessons are certain. On a busy machine, ends of calls arrive late.
 */
const FULL_MIN = 8;

/** How long a doubt lasts without another refusal, and how long no refusal counts as a lag after it was confirmed. */
const DOUBT_MS = 60_000;
const NOT_CURED_MS = 60_000;

export function noLag(): Lag {
  return {
    ms: 0,
    refusedMs: 0,
    taken: 0,
    takenMs: 0,
    served: 0,
    servedBeforeProbe: SERVED_BEFORE_SHRINK_MIN,
    refusedAt: instant(0),
    raisedBy: null,
    doubt: null,
    sure: { ms: 0, refusedMs: 0 },
    fullSeen: 0,
    notCuredAt: instant(0),
  };
}

/**
 * Learns from a refusal for too many concurrent calls.
 *
 * @returns whether a lag may explain it. Otherwise the upstream accepts fewer calls
 */
export function explainsRefusal(lag: Lag, call: LagRefusedCall, now: InstantMs): boolean {
  const { gapMs, ticketId } = call;
  if (gapMs === Infinity || now - lag.notCuredAt < NOT_CURED_MS) return false;
  if (now - lag.refusedAt > DOUBT_MS) lag.doubt = null;
  const { doubt, ms, refusedMs } = lag;
  // Other calls were accepted since this one raised the cooldown, so it may be refused in any case.
  if (doubt === null && lag.raisedBy === ticketId && gapMs >= ms) return false;
  const next = withRefusal(doubt ?? { ...NO_DOUBT, before: { ms, refusedMs } }, ms, call);
  const isExhausted = gapMs >= LAG_MAX_MS && next.raises > 0;
  if (isExhausted || next.times >= DOUBTED_MAX) {
    Object.assign(lag, next.before, { doubt: null, raisedBy: null, notCuredAt: now });
    return false;
  }
  if (gapMs >= LAG_MAX_MS) return false;
  lag.doubt = next;
  if (gapMs >= ms) raise(lag, next, call);
  else if (next.raises === 0) awaitProbe(lag, gapMs <= refusedMs ? 2 : 1);
  lag.refusedMs = Math.max(refusedMs, gapMs, LEAST_MS);
  lag.refusedAt = now;
  lag.fullSeen = 0;
  return true;
}

const NO_DOUBT = { slots: Infinity, times: 0, raises: 0 };

function withRefusal(
  doubt: LagDoubt,
  ms: number,
  { slotsAtGrant, gapMs }: LagRefusedCall,
): LagDoubt {
  // Calls sent before the cooldown was raised bring no new information.
  const times = doubt.times + (gapMs >= ms || doubt.raises === 0 ? 1 : 0);
  return { ...doubt, slots: Math.min(doubt.slots, slotsAtGrant), times };
}

function raise(lag: Lag, doubt: LagDoubt, { ticketId, gapMs }: LagRefusedCall): void {
  const first = lag.ms === 0 ? FIRST_MS : Math.max(RAISE_MIN_MS, RAISE * gapMs);
  lag.ms = doubt.raises === 0 ? Math.min(LAG_MAX_MS, first) : LAG_MAX_MS;
  doubt.raises += 1;
  lag.raisedBy = ticketId;
  awaitProbe(lag, 1);
}

/**
 * Notes that the upstream accepts fewer calls than before. So its refusals meanwhile show no lag, unless they were all
 * of one call that is always refused.
 */
export function noteFewer(lag: Lag, ticketId: TicketId): void {
  if (lag.raisedBy === ticketId) return;
  Object.assign(lag, lag.sure, { doubt: null });
  awaitProbe(lag, 1);
}

/**
 * Learns from an accepted call.
 *
 * @param full whether it took the last slot of those in use, or of all that may have counted. In the latter case,
 * earlier refusals were not caused by the ceiling
 */
export function noteAccepted(
  lag: Lag,
  call: GappedCall,
  full: { readonly isLast: boolean; readonly isLastCounted: boolean },
): void {
  const { grantedAt, gapMs, slotsAtGrant } = call;
  if (full.isLast && grantedAt > lag.notCuredAt) lag.notCuredAt = instant(0);
  if (grantedAt <= lag.refusedAt) return;
  if (full.isLastCounted) lag.fullSeen += 1;
  if (lag.fullSeen >= FULL_MIN || grantedAt - lag.refusedAt > DOUBT_MS) {
    lag.sure = { ms: lag.ms, refusedMs: lag.refusedMs };
  }
  if (lag.doubt !== null) {
    if (slotsAtGrant >= lag.doubt.slots) lag.doubt = null;
    else lag.doubt.raises = 0;
  }
  if (lag.ms === 0 || gapMs >= 2 * LAG_MAX_MS) return;
  lag.served += 1;
  if (gapMs >= lag.ms) return;
  lag.taken += 1;
  lag.takenMs = Math.max(lag.takenMs, gapMs);
  const wasRefused = lag.takenMs <= lag.refusedMs;
  if (lag.taken < (wasRefused ? TAKEN_AGAIN_MIN : TAKEN_MIN)) {
    lag.served = SERVED_BEFORE_SHRINK_MAX;
    return;
  }
  lag.ms = lag.takenMs < LEAST_MS ? 0 : lag.takenMs;
  if (wasRefused) lag.refusedMs = lag.ms / 2;
  awaitProbe(lag, wasRefused ? 1 / 2 : 1);
}

/** Returns the cooldown of the next slot. From time to time it is shorter, to probe whether that is enough. */
export function takeCooldownMs(lag: Lag): number {
  if (lag.ms === 0 || lag.served < servedBeforeProbe(lag)) return lag.ms;
  lag.served = 0;
  return probeMs(lag);
}

/** Few calls suffice while there are untested values between the accepted and the refused gap. */
function servedBeforeProbe(lag: Lag): number {
  return lag.doubt === null && isNear(lag) ? lag.servedBeforeProbe : SERVED_BEFORE_PROBE;
}

function isNear({ ms, refusedMs }: Lag): boolean {
  return ms - refusedMs <= Math.max(NEAR_MS, NEAR_SHARE * ms);
}

function probeMs(lag: Lag): number {
  const { ms, refusedMs } = lag;
  const shorter = isNear(lag) ? SHRINK * ms : Math.sqrt(Math.max(LEAST_MS, refusedMs) * ms);
  return shorter < LEAST_MS ? 0 : shorter;
}

/** Restarts the wait for the next probe of a refused gap, with the last length multiplied by `times`. */
function awaitProbe(lag: Lag, times: number): void {
  lag.taken = 0;
  lag.takenMs = 0;
  lag.served = 0;
  const served = Math.max(SERVED_BEFORE_SHRINK_MIN, times * lag.servedBeforeProbe);
  lag.servedBeforeProbe = Math.min(SERVED_BEFORE_SHRINK_MAX, served);
}

/** Corrects times that were noted by a clock that was ahead. */
export function rebase(lag: Lag, now: InstantMs): void {
  lag.refusedAt = earlier(lag.refusedAt, now);
  lag.notCuredAt = earlier(lag.notCuredAt, now);
}

/**
 * When the last calls ended, one entry per slot. An upstream that lags still counts some of them. Kept in memory only,
 * because after a reset cooling slots are held for longer than any lag.
 */
export interface RecentEnds {
  /** A ring with one place per slot. */
  readonly endedAt: InstantMs[];
  next: number;
}

/** Maximum number of remembered slots. A lag of more slots is not measured. */
const PLACES = 1_024;

const NEVER_ENDED = instant(-Infinity);

export function noEnds(): RecentEnds {
  return { endedAt: [], next: 0 };
}

export function noteEnd(ends: RecentEnds, slots: number, now: InstantMs): void {
  for (let slot = 0; slot < slots; slot += 1) {
    ends.endedAt[ends.next] = now;
    ends.next = (ends.next + 1) % PLACES;
  }
}

export function endedSince(ends: RecentEnds, since: InstantMs): number {
  let slots = 0;
  while (endOf(ends, slots + 1) > since) slots += 1;
  return slots;
}

/** Returns when the slot was freed that is `count`-th from the end. -Infinity if unknown, or if none was. */
export function endOf({ endedAt, next }: RecentEnds, count: number): InstantMs {
  if (count < 1 || count > endedAt.length) return NEVER_ENDED;
  return endedAt[(next - count + PLACES) % PLACES] ?? NEVER_ENDED;
}

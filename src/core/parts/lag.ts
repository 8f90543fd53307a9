import { earlier, instant, type InstantMs, type TicketId } from '../words/ids.ts';

/**
 * Lessons about how much longer the upstream counts a call than the group does. Where every slot counts, a call
 * that follows too soon on one that has ended is refused as one too many. So slots stay down for a while after
 * their calls: not at all until a refusal shows a lag, and then as long as is accepted and hardly longer.
 *
 * The **gap** of a call is how long ago those had ended, when it went out, that leave it no room if they still
 * count. A refusal says that the lag is longer than the gap, or that the upstream takes fewer calls: the cool-down
 * grows in two steps to its maximum, and what that does not cure is no lag. So a lag does not pull the ceiling
 * down.
 */
export interface Lag extends KnownLag {
  /** Calls accepted in a row after a gap shorter than the cool-down, and the longest of those gaps. */
  taken: number;
  takenMs: number;
  /** Calls accepted after any gap since the last probe, and how many there must be before the next. */
  served: number;
  servedBeforeProbe: number;
  /** The last refusal that was taken for a lag, and the call whose refusal made the cool-down longer last. */
  refusedAt: InstantMs;
  raisedBy: TicketId | null;
  /** The case for a lower ceiling; null: what was refused was accepted since. */
  doubt: LagDoubt | null;
  /**
   * Cool-down and gap of when all slots were last seen to be taken, those that may still have counted among them. What
   * was refused since may as well be a lower ceiling's.
   */
  sure: KnownLag;
  /** How often that was seen since the last refusal. */
  fullSeen: number;
  /** The last time that this was found true: for a while other refusals are no lag either. */
  notCuredAt: InstantMs;
}

interface KnownLag {
  /** The cool-down in force: the shortest that is accepted, as far as is known. 0: none. */
  ms: number;
  /** The longest gap that was refused, while nothing was accepted after a shorter one. */
  refusedMs: number;
}

/** Refusals since the first of which no call was accepted beside as many. */
interface LagDoubt {
  /** The fewest slots at the upstream of one of the refused. */
  readonly slots: number;
  /** How many there were, but for those that went out before the cool-down was made longer. */
  readonly times: number;
  /** How often the cool-down was made longer since a call was accepted beside fewer. */
  raises: number;
  /** Cool-down and gap of before. */
  readonly before: KnownLag;
}

/** A call that was accepted or refused. */
export interface GappedCall {
  readonly grantedAt: InstantMs;
  /** Slots that were at the upstream when it was granted, its own among them. */
  readonly slotsAtGrant: number;
  /** Infinity: no call that has ended was in its way. */
  readonly gapMs: number;
}

interface LagRefusedCall extends GappedCall {
  readonly ticketId: TicketId;
}

/** Maximum lag that is learned. */
export const LAG_MAX_MS = 1_000;

/**
 * The cool-down after the first refusal where there was none. The second makes it the longest, so that a lag costs no
 * call more than two tries.
 */
const FIRST_MS = 200;

/** By what the cool-down exceeds a refused gap, where there was one. */
const RAISE = 1.5;
const RAISE_MIN_MS = 50;

/** How near the cool-down comes to the longest gap that was refused. */
const NEAR_MS = 4;
const NEAR_SHARE = 0.1;

/** The part of the cool-down that is tried once it is as near as that: the lag may have shrunk. */
const SHRINK = 0.9;

/** Minimum cool-down that is worth having. */
const LEAST_MS = 4;

/** Calls that prove a shorter cool-down, and one that was refused before: a busy machine hears of ends late. */
const TAKEN_MIN = 2;
const TAKEN_AGAIN_MIN = 8;

/**
 * Calls accepted before a probe, and before one of what was refused before: of those twice as many with each that
 * fails. A failed probe is one refused call.
 */
const SERVED_BEFORE_PROBE = 4;
const SERVED_BEFORE_SHRINK_MIN = 64;
const SERVED_BEFORE_SHRINK_MAX = 512;

/** How many such refusals say that the upstream takes fewer, though none of them met the longest cool-down. */
const DOUBTED_MAX = 4;

/** Sights of all slots taken that make what is known sure: on a busy machine ends of calls are heard late. */
const FULL_MIN = 8;

/** How long a doubt lasts without another refusal, and how long refusals are no lag once it was found true. */
const DOUBT_MS = 60_000;
const NOT_CURED_MS = 60_000;

/** The lag of an upstream that has refused nothing. */
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
 * Takes in that a call was refused because too many were in flight.
 *
 * @returns whether a lag may be why; otherwise the upstream takes fewer calls
 */
export function explainsRefusal(lag: Lag, call: LagRefusedCall, now: InstantMs): boolean {
  const { gapMs, ticketId } = call;
  if (gapMs === Infinity || now - lag.notCuredAt < NOT_CURED_MS) return false;
  if (now - lag.refusedAt > DOUBT_MS) lag.doubt = null;
  const { doubt, ms, refusedMs } = lag;
  // Others were accepted since it made the cool-down longer: it may be refused whatever happens.
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
  // Those that went out before the cool-down was made longer bring no news.
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
 * Takes in that the upstream takes fewer calls than it did. So what it refused meanwhile shows no lag, unless that was
 * one call that is refused whatever happens.
 */
export function noteFewer(lag: Lag, ticketId: TicketId): void {
  if (lag.raisedBy === ticketId) return;
  Object.assign(lag, lag.sure, { doubt: null });
  awaitProbe(lag, 1);
}

/**
 * Takes in that a call was accepted.
 *
 * @param full whether it took the last slot, of those that calls had, or of all that may have counted: then what was
 *   refused before is no matter of the ceiling
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

/** Takes the cool-down of the next slot: now and then a shorter one, to find out whether that is enough. */
export function takeCooldownMs(lag: Lag): number {
  if (lag.ms === 0 || lag.served < servedBeforeProbe(lag)) return lag.ms;
  lag.served = 0;
  return probeMs(lag);
}

/** Few while there is a shorter one between what is accepted and what was refused. */
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

/** Begins to wait for the next probe of what was refused before, so many times as long as for the last. */
function awaitProbe(lag: Lag, times: number): void {
  lag.taken = 0;
  lag.takenMs = 0;
  lag.served = 0;
  const served = Math.max(SERVED_BEFORE_SHRINK_MIN, times * lag.servedBeforeProbe);
  lag.servedBeforeProbe = Math.min(SERVED_BEFORE_SHRINK_MAX, served);
}

/** Brings what a clock that was ahead has noted back to now. */
export function rebase(lag: Lag, now: InstantMs): void {
  lag.refusedAt = earlier(lag.refusedAt, now);
  lag.notCuredAt = earlier(lag.notCuredAt, now);
}

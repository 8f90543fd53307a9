import { earlier, instant, type InstantMs, type TicketId } from '../words/ids.ts';

/**
 * Evidence for and against a refusal for concurrency. One refusal alone may be a call that is refused
 * whatever happens, or a limit that is misread: it says that the upstream takes no more than was in
 * flight, and is believed as far as nothing that was served says otherwise. A second one, of another call
 * and before anything contradicts the first, is believed whatever was served before.
 */
export interface Evidence {
  /** The most slots at the upstream of which the last was served, and when that was seen. */
  servedSlots: number;
  servedAt: InstantMs;
  /** More than that, as often as it was seen: once may be chance, because another call had just ended. */
  moreSlots: number;
  moreSeen: number;
  refusedAt: InstantMs;
  /** The last refusal. Null: there was none, or more at once were served since. */
  refusal: RefusalEvidence | null;
}

interface RefusalEvidence {
  readonly ticketId: TicketId;
  readonly at: InstantMs;
  /** Slots of the others that were at the upstream: it claims that there is no room for more. */
  readonly slots: number;
  /** The most slots at the upstream of a call that was granted and served since. */
  servedSlots: number;
  /** It was not believed: its call lets others try first whether there is room. */
  isHeldBack: boolean;
}

/** A call that was served. */
export interface ServedCall {
  readonly grantedAt: InstantMs;
  /** Slots that were at the upstream when it was granted, its own among them. */
  readonly slotsAtGrant: number;
}

/** How long what was served counts. Where the upstream takes less now, that costs one refusal more. */
const SERVED_TTL_MS = 600_000;

/**
 * Minimum sights of more slots than were served at once before, until they count. On a busy machine the ends
 * of calls are heard of late, so the fifth of a limit of 4 is served by chance now and then, and a probe then
 * costs two refusals: with 3, in 42 % of simulated minutes of calls of 300 ms; with 8, in 3 %.
 */
const SEEN_MIN = 8;

/** How long after a refusal a second one confirms it. */
const CONFIRMED_WITHIN_MS = 5_000;

/**
 * How long a call whose refusal was not believed lets the others try: longer than the slot of the
 * refused call stays down by default, and short enough that its own next refusal confirms the first.
 */
export const HELD_BACK_MS = 4_000;

export function noEvidence(): Evidence {
  return {
    servedSlots: 0,
    servedAt: instant(0),
    moreSlots: 0,
    moreSeen: 0,
    refusedAt: instant(0),
    refusal: null,
  };
}

/**
 * Takes a refusal in, and weighs it.
 *
 * @returns how many slots at once the upstream takes, by all that is known
 */
export function weighRefusal(
  evidence: Evidence,
  { ticketId, othersInUse }: { readonly ticketId: TicketId; readonly othersInUse: number },
  now: InstantMs,
): number {
  const { refusal: first } = evidence;
  const isConfirmed =
    first !== null &&
    now - first.at <= CONFIRMED_WITHIN_MS &&
    // The same call again, beside fewer others, may as well be refused whatever happens.
    (first.ticketId !== ticketId || first.slots <= othersInUse);
  const isFresh = now - evidence.servedAt <= SERVED_TTL_MS;
  const served = isConfirmed ? first.servedSlots : isFresh ? evidence.servedSlots : 0;
  const slots = Math.max(othersInUse, served);
  if (isConfirmed) evidence.servedSlots = Math.min(evidence.servedSlots, slots);
  const isHeldBack = slots > othersInUse;
  evidence.refusedAt = now;
  evidence.moreSeen = 0;
  evidence.refusal = { ticketId, at: now, slots: othersInUse, servedSlots: 0, isHeldBack };
  return slots;
}

/** Notes a refusal that may have another cause: if that is not it, the next one confirms this. */
export function noteOpenRefusal(
  evidence: Evidence,
  { ticketId, othersInUse }: { readonly ticketId: TicketId; readonly othersInUse: number },
  now: InstantMs,
): void {
  evidence.refusedAt = now;
  evidence.moreSeen = 0;
  const isHeldBack = false;
  evidence.refusal = { ticketId, at: now, slots: othersInUse, servedSlots: 0, isHeldBack };
}

/**
 * Notes that a call was served which made so many slots at the upstream when it was granted. Where something
 * was refused since, it may be one of those.
 */
export function noteAccepted(
  evidence: Evidence,
  { grantedAt, slotsAtGrant }: ServedCall,
  now: InstantMs,
): void {
  if (grantedAt <= evidence.refusedAt) return;
  if (now - evidence.servedAt > SERVED_TTL_MS) evidence.servedSlots = 0;
  if (slotsAtGrant === evidence.servedSlots) evidence.servedAt = now;
  if (slotsAtGrant > evidence.servedSlots) noteMore(evidence, slotsAtGrant, now);
  const { refusal } = evidence;
  if (refusal === null) return;
  refusal.servedSlots = Math.max(refusal.servedSlots, slotsAtGrant);
  if (slotsAtGrant > refusal.slots) evidence.refusal = null;
}

function noteMore(evidence: Evidence, slots: number, now: InstantMs): void {
  evidence.moreSlots = evidence.moreSeen === 0 ? slots : Math.min(evidence.moreSlots, slots);
  evidence.moreSeen += 1;
  if (evidence.moreSeen < SEEN_MIN) return;
  evidence.servedSlots = evidence.moreSlots;
  evidence.servedAt = now;
  evidence.moreSeen = 0;
}

/**
 * Whether a call lets others try first: it was refused, and that was not believed. Beside fewer it waits
 * too, or the oldest would meet every refusal of an upstream that takes less now.
 */
export function letsOthersTry(
  { refusal }: Evidence,
  ticketId: TicketId,
  othersInUse: number,
): boolean {
  return refusal?.isHeldBack === true && refusal.ticketId === ticketId && othersInUse > 0;
}

/** Whether a refusal is in doubt, so that it matters to hear at the headers what is served. */
export function isInDoubt({ refusal }: Evidence, now: InstantMs): boolean {
  return refusal !== null && now - refusal.at <= CONFIRMED_WITHIN_MS;
}

/** Reads until when a call is held back; null: none is. */
export function heldBackUntil({ refusal }: Evidence): InstantMs | null {
  return refusal?.isHeldBack === true ? instant(refusal.at + HELD_BACK_MS) : null;
}

/** Lets a call go that was held back for long enough. */
export function endHoldBack({ refusal }: Evidence, now: InstantMs): void {
  if (refusal?.isHeldBack !== true || now < refusal.at + HELD_BACK_MS) return;
  refusal.isHeldBack = false;
}

/** Brings what a clock that was ahead has noted back to now. */
export function rebase(evidence: Evidence, now: InstantMs): void {
  evidence.servedAt = earlier(evidence.servedAt, now);
  evidence.refusedAt = earlier(evidence.refusedAt, now);
  const { refusal } = evidence;
  if (refusal !== null) evidence.refusal = { ...refusal, at: earlier(refusal.at, now) };
}

import { earlier, instant, type InstantMs, type TicketId } from '../words/ids.ts';
import {
  isAmbiguous,
  scopeKey,
  type CallNames,
  type Scope,
  type RefusalKind,
} from '../words/signal.ts';

/** How much a refusal proves, and about which calls. */

/**
 * Evidence for and against a refusal for concurrency.
 *
 * A single refusal may come from a call that is always refused, or from a misread limit. It claims that the upstream
 * accepts no more than what was in flight. It is believed unless calls served lately contradict it. A second refusal,
 * of another call and before anything contradicts the first, is believed in any case.
 */
export interface Evidence {
  /** The highest number of slots at the upstream for which a call was served, and when that was last seen. */
  servedSlots: number;
  servedAt: InstantMs;
  /** A higher number, and how often it was seen. Once may be a coincidence, because another call had just ended. */
  moreSlots: number;
  moreSeen: number;
  refusedAt: InstantMs;
  /** The last refusal. null if there was none, or if more concurrent calls were served since. */
  refusal: RefusalEvidence | null;
}

interface RefusalEvidence {
  readonly ticketId: TicketId;
  readonly at: InstantMs;
  /** Slots of the other calls at the upstream. The refusal claims that there is no room for more. */
  readonly slots: number;
  /** The highest number of slots at the upstream for a call that was granted and served since. */
  servedSlots: number;
  /** Whether it was not believed, so its call lets other calls test for room first. */
  isHeldBack: boolean;
}

export interface ServedCall {
  readonly grantedAt: InstantMs;
  /** Slots at the upstream when it was granted, including its own. */
  readonly slotsAtGrant: number;
}

/** How long served calls count as evidence. If the upstream accepts fewer calls now, one more call is refused. */
const SERVED_TTL_MS = 600_000;

/**
 * How often a higher number must be seen before it counts. On a busy machine, ends of calls arrive late, so the fifth
 * call of a limit of 4 is sometimes served by coincidence, and a probe then costs two refusals. In simulations of calls
 * of 300 ms this happened in 42 % of minutes with a value of 3, and in 3 % with 8.
 */
const SEEN_MIN = 8;

/** How long a second refusal can confirm the first one. */
const CONFIRMED_WITHIN_MS = 5_000;

/**
 * How long a call with a disbelieved refusal lets others go first. It is longer than the default cooldown after a
 * refusal, and short enough for its own next refusal to confirm the first one.
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
 * Adds a refusal to the evidence.
 *
 * @returns the number of slots that the upstream accepts, by all evidence
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
    // With fewer other calls in flight, a second refusal of the same call may have another cause.
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

/** Notes a refusal that may have another cause. If it does not, the next refusal confirms this one. */
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
 * Notes a served call, with the number of slots at the upstream when it was granted. A call granted before the last
 * refusal may be one of those that caused it, so it does not count.
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
 * Whether a call lets others go first, because its refusal was not believed. It does so even with fewer calls in
 * flight. Otherwise the oldest call would meet every refusal of an upstream that accepts fewer calls now.
 */
export function letsOthersTry(
  { refusal }: Evidence,
  ticketId: TicketId,
  othersInUse: number,
): boolean {
  return refusal?.isHeldBack === true && refusal.ticketId === ticketId && othersInUse > 0;
}

/** Whether a refusal is in doubt, so that reports of served calls at their headers matter. */
export function isInDoubt({ refusal }: Evidence, now: InstantMs): boolean {
  return refusal !== null && now - refusal.at <= CONFIRMED_WITHIN_MS;
}

/** Returns how long a call is held back. null if none is. */
export function heldBackUntil({ refusal }: Evidence): InstantMs | null {
  return refusal?.isHeldBack === true ? instant(refusal.at + HELD_BACK_MS) : null;
}

/** Ends the hold of a call that was held back long enough. */
export function endHoldBack({ refusal }: Evidence, now: InstantMs): void {
  if (refusal?.isHeldBack !== true || now < refusal.at + HELD_BACK_MS) return;
  refusal.isHeldBack = false;
}

/** Corrects times that were noted by a clock that was ahead. */
export function rebase(evidence: Evidence, now: InstantMs): void {
  evidence.servedAt = earlier(evidence.servedAt, now);
  evidence.refusedAt = earlier(evidence.refusedAt, now);
  const { refusal } = evidence;
  if (refusal !== null) evidence.refusal = { ...refusal, at: earlier(refusal.at, now) };
}

/**
 * The names of recent calls of a group, and refusals that other calls may confirm. Kept in memory only.
 *
 * A refusal of one credential applies to all once a second credential confirms it within a
 * minute. Refusals without a cause are also confirmed by a second model.
 */
export interface SeenCalls {
  readonly model: SeenName;
  readonly tier: SeenName;
  readonly credential: SeenName;
  readonly refusals: Map<string, SeenRefusal>;
  /** When scopes without effect were last removed. */
  prunedAt: InstantMs;
}

/** The last value of a name. undefined if there was no call. */
interface SeenName {
  value: string | null | undefined;
  /** When the value last changed. 0 if it never did. */
  mixedAt: InstantMs;
}

/** A refusal of calls with one value of a name. A refusal with another value confirms it. */
interface SeenRefusal {
  readonly name: 'model' | 'credential';
  readonly value: string;
  readonly at: InstantMs;
}

const SCOPE_CONFIRMED_WITHIN_MS = 60_000;

/** How long calls with other names count as recent calls of the group. */
const MIXED_MS = 600_000;

/** Maximum number of refusals that wait for confirmation. */
const REFUSALS_MAX = 64;

/** Kinds of refusals without a cause. If several models receive them, the cause is the upstream. */
const OPEN_KINDS: ReadonlySet<RefusalKind> = new Set(['error', 'unknown']);

const NAMES = ['model', 'tier', 'credential'] as const;

export function nothingSeen(): SeenCalls {
  const none = (): SeenName => ({ value: undefined, mixedAt: instant(0) });
  const names = { model: none(), tier: none(), credential: none() };
  return { ...names, refusals: new Map(), prunedAt: instant(0) };
}

export function noteSeen(seen: SeenCalls, names: CallNames, now: InstantMs): void {
  for (const name of NAMES) {
    if (names.isUnread && name !== 'credential') continue;
    const last = seen[name];
    if (last.value !== undefined && last.value !== names[name]) last.mixedAt = now;
    last.value = names[name];
  }
}

/** Whether all recent calls are in a scope. */
export function areAllIn(scope: Scope, seen: SeenCalls, now: InstantMs): boolean {
  return NAMES.every((name) => {
    const { value, mixedAt } = seen[name];
    if (scope[name] === null) return true;
    const isUniform = mixedAt === 0 || now - mixedAt >= MIXED_MS;
    return isUniform && (value === undefined || value === scope[name]);
  });
}

/**
 * Notes a refusal, and widens its scope if calls with another value were refused in the same way within a minute.
 *
 * @param place key of the member that refused. Refusals of other members confirm nothing
 */
export function confirmedScope(
  { refusals }: SeenCalls,
  place: string,
  kind: RefusalKind,
  scope: Scope,
  now: InstantMs,
): Scope {
  let wide = scope;
  for (const name of ['credential', 'model'] as const) {
    const value = wide[name];
    if (value === null || (name === 'model' && !OPEN_KINDS.has(kind))) continue;
    if (name === 'credential' && isAmbiguous(value)) continue;
    const wider = { ...wide, [name]: null };
    const key = `${place} ${kind} ${name} ${scopeKey(wider)}`;
    const last = refusals.get(key);
    refusals.delete(key);
    refusals.set(key, { name, value, at: now });
    const [oldest] = refusals.keys();
    if (refusals.size > REFUSALS_MAX && oldest !== undefined) refusals.delete(oldest);
    const isRecent = last !== undefined && now - last.at <= SCOPE_CONFIRMED_WITHIN_MS;
    if (isRecent && last.value !== value) wide = wider;
  }
  return wide;
}

/** Removes refusals that can no longer be confirmed. */
export function forgetOld({ refusals }: SeenCalls, now: InstantMs): void {
  for (const [key, { at }] of refusals) {
    if (now - at > SCOPE_CONFIRMED_WITHIN_MS) refusals.delete(key);
  }
}

/** Whether a served call contradicts an unconfirmed refusal. */
export function wouldContradict(
  { refusals }: SeenCalls,
  names: CallNames,
  now: InstantMs,
): boolean {
  for (const refusal of refusals.values()) {
    const isOpen = now - refusal.at <= SCOPE_CONFIRMED_WITHIN_MS;
    if (isOpen && isContradicted(refusal, names)) return true;
  }
  return false;
}

/** Removes refusals that a served call with another value contradicts. */
export function noteContradicted({ refusals }: SeenCalls, names: CallNames): void {
  for (const [key, refusal] of refusals) {
    if (isContradicted(refusal, names)) refusals.delete(key);
  }
}

function isContradicted({ name, value }: SeenRefusal, names: CallNames): boolean {
  const isKnown = name === 'credential' || !names.isUnread;
  return isKnown && names[name] !== value;
}

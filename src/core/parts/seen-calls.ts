import { instant, type InstantMs } from '../words/ids.ts';
import { isAmbiguous, scopeKey, type CallNames, type Scope } from '../words/scope.ts';
import type { RefusalKind } from '../words/signal.ts';

/**
 * The names of the calls that a group has seen lately, and the refusals that others may confirm. Kept in memory only.
 *
 * A refusal that is held against one credential becomes the state of all when a second credential confirms it within a
 * minute. For refusals that do not name their cause, calls of a second model confirm those of the first.
 */
export interface SeenCalls {
  readonly model: Seen;
  readonly tier: Seen;
  readonly credential: Seen;
  readonly refusals: Map<string, SeenRefusal>;
  /** When scopes were last looked through for those of which nothing is left to know. */
  prunedAt: InstantMs;
}

/** The last value of one name that calls had. Undefined: there was no call. */
interface Seen {
  value: string | null | undefined;
  /** When it last differed from the one before; 0: never. */
  mixedAt: InstantMs;
}

/** A refusal of calls with one value of a name, which one of calls with another value confirms. */
interface SeenRefusal {
  readonly name: 'model' | 'credential';
  readonly value: string;
  readonly at: InstantMs;
}

/** How long after a refusal another credential or model confirms it. */
const CONFIRMED_WITHIN_MS = 60_000;

/** How long after calls with other names were seen they count as calls of the group. */
const MIXED_MS = 600_000;

/** Maximum refusals that are remembered for others to confirm. */
const REFUSALS_MAX = 64;

/** Refusals that do not name their cause, so that those of several models have one in common. */
const OPEN_KINDS: ReadonlySet<RefusalKind> = new Set(['error', 'unknown']);

const NAMES = ['model', 'tier', 'credential'] as const;

export function nothingSeen(): SeenCalls {
  const none = (): Seen => ({ value: undefined, mixedAt: instant(0) });
  const names = { model: none(), tier: none(), credential: none() };
  return { ...names, refusals: new Map(), prunedAt: instant(0) };
}

/** Notes the names of a call, as far as they were read. */
export function noteSeen(seen: SeenCalls, names: CallNames, now: InstantMs): void {
  for (const name of NAMES) {
    if (names.isUnread && name !== 'credential') continue;
    const last = seen[name];
    if (last.value !== undefined && last.value !== names[name]) last.mixedAt = now;
    last.value = names[name];
  }
}

/** Whether all calls that were seen lately are in a scope. */
export function areAllIn(scope: Scope, seen: SeenCalls, now: InstantMs): boolean {
  return NAMES.every((name) => {
    const { value, mixedAt } = seen[name];
    if (scope[name] === null) return true;
    const isUniform = mixedAt === 0 || now - mixedAt >= MIXED_MS;
    return isUniform && (value === undefined || value === scope[name]);
  });
}

/**
 * Notes a refusal, and widens its scope where calls with another value of a name were refused alike within a minute.
 *
 * @param place names where the calls went: refusals elsewhere confirm nothing
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
    const isRecent = last !== undefined && now - last.at <= CONFIRMED_WITHIN_MS;
    if (isRecent && last.value !== value) wide = wider;
  }
  return wide;
}

/** Forgets refusals that nothing can confirm any more. */
export function forgetOld({ refusals }: SeenCalls, now: InstantMs): void {
  for (const [key, { at }] of refusals) {
    if (now - at > CONFIRMED_WITHIN_MS) refusals.delete(key);
  }
}

/** Whether a served call contradicts a refusal that may still be confirmed. */
export function wouldContradict(
  { refusals }: SeenCalls,
  names: CallNames,
  now: InstantMs,
): boolean {
  for (const refusal of refusals.values()) {
    const isOpen = now - refusal.at <= CONFIRMED_WITHIN_MS;
    if (isOpen && isContradicted(refusal, names)) return true;
  }
  return false;
}

/** Forgets refusals that a served call contradicts: one with another value. */
export function noteContradicted({ refusals }: SeenCalls, names: CallNames): void {
  for (const [key, refusal] of refusals) {
    if (isContradicted(refusal, names)) refusals.delete(key);
  }
}

function isContradicted({ name, value }: SeenRefusal, names: CallNames): boolean {
  const isKnown = name === 'credential' || !names.isUnread;
  return isKnown && names[name] !== value;
}

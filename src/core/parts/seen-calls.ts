import { instant, type InstantMs } from '../words/ids.ts';
import { isAmbiguous, scopeKey, type CallNames, type Scope } from '../words/scope.ts';
import type { RefusalKind } from '../words/signal.ts';

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

const CONFIRMED_WITHIN_MS = 60_000;

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
    const isRecent = last !== undefined && now - last.at <= CONFIRMED_WITHIN_MS;
    if (isRecent && last.value !== value) wide = wider;
  }
  return wide;
}

/** Removes refusals that can no longer be confirmed. */
export function forgetOld({ refusals }: SeenCalls, now: InstantMs): void {
  for (const [key, { at }] of refusals) {
    if (now - at > CONFIRMED_WITHIN_MS) refusals.delete(key);
  }
}

/** Whether a served call contradicts an unconfirmed refusal. */
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

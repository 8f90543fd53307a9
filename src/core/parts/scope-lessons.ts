import type { InstantMs } from '../words/ids.ts';
import type { BreakerSettings } from '../words/member.ts';
import { ALL_CALLS, scopeKey, type Scope } from '../words/scope.ts';
import { closedBreaker, hasFailedLately } from './breaker.ts';
import { emptyCeiling } from './ceiling.ts';
import { noLag } from './lag.ts';
import { emptyPause, isPaused, RAMP_MS } from './pause.ts';
import type { Drained } from './rates.ts';
import type { Lessons } from './reports.ts';

export interface ScopeLessons extends Lessons {
  readonly scope: Scope;
  /** When they were last refused. */
  lastAt: InstantMs;
  /** When one of these calls last requested a slot. Absent means at the last refusal. */
  usedAt?: InstantMs;
  /** The only caller of these calls. null if there are several. Absent if unknown. */
  by?: string | null;
}

export interface Scopes {
  /** The calls to which the member's own lessons apply. */
  about: Scope;
  readonly narrower: ScopeLessons[];
  /** Amounts that refusals of the calls in `about` removed from the member's rate limits. Absent if there are none. */
  drained?: Drained;
}

/** Maximum number of scopes of a member. `leastNeeded` picks the one to remove. */
export const SCOPES_MAX = 64;

/** How long a pause of unknown length is remembered, so that the next one is longer. */
const OPEN_PAUSE_MS = 600_000;

export function noScopes(): Scopes {
  return { about: ALL_CALLS, narrower: [] };
}

export function newLessons(scope: Scope, now: InstantMs): ScopeLessons {
  return {
    scope,
    lastAt: now,
    ceiling: emptyCeiling(now),
    pause: emptyPause(),
    breaker: closedBreaker(),
    lag: noLag(),
  };
}

/** Notes that a call of a scope requests a slot. */
export function noteUse(lessons: ScopeLessons, caller: string, now: InstantMs): void {
  lessons.usedAt = now;
  if (lessons.by !== undefined && lessons.by !== caller) lessons.by = null;
}

/** Whether lessons no longer have any effect. */
export function isForgotten(lessons: Lessons, settings: BreakerSettings, now: InstantMs): boolean {
  const { pause, lag } = lessons;
  const isKnown = pause.openMs === 0 || now - pause.notedAt > OPEN_PAUSE_MS;
  return isKnown && lag.ms === 0 && !dependsOnResults(lessons, settings, now);
}

/** Whether lessons hold calls: by a pause or the growth after it, a breaker, or a learned limit. */
export function holdsCalls({ ceiling, pause, breaker }: Lessons, now: InstantMs): boolean {
  return ceiling.slots !== null || breaker.phase !== 'closed' || now < pause.until + RAMP_MS;
}

/** Whether lessons hold calls or may do so soon, so the results of these calls must be kept separate. */
export function dependsOnResults(
  lessons: Lessons,
  settings: BreakerSettings,
  now: InstantMs,
): boolean {
  return holdsCalls(lessons, now) || hasFailedLately(lessons.breaker, now, settings);
}

/**
 * Picks the scope to remove when the maximum is reached: one that stops no calls, if there is one. Otherwise it is one
 * of the largest set of similar scopes: those of one caller, or those that differ in one name only. So a caller that
 * makes up names removes its own scopes. Within a set, the least recently used scope is removed.
 */
export function leastNeeded(all: readonly ScopeLessons[], now: InstantMs): ScopeLessons | null {
  const idle = all.filter(({ pause, breaker, ceiling }) => {
    return !isPaused(pause, now) && breaker.phase === 'closed' && ceiling.slots === null;
  });
  const sizes = new Map<string, number>();
  for (const key of all.flatMap(similarSetsOf)) sizes.set(key, (sizes.get(key) ?? 0) + 1);
  const sizeOf = (one: ScopeLessons): number => {
    return similarSetsOf(one).reduce((size, key) => size + (sizes.get(key) ?? 0), 0);
  };
  const [least] = (idle.length > 0 ? idle : all)
    .map((one) => ({ one, size: sizeOf(one), usedAt: one.usedAt ?? one.lastAt }))
    .toSorted((a, b) => b.size - a.size || a.usedAt - b.usedAt);
  return least?.one ?? null;
}

/** Keys of the sets of similar scopes that a scope belongs to. */
function similarSetsOf({ scope, by = null }: ScopeLessons): readonly string[] {
  const named = (['model', 'tier', 'credential'] as const).filter((name) => scope[name] !== null);
  const alike = named.map((name) => `${name} ${scopeKey({ ...scope, [name]: null })}`);
  return by === null ? alike : [...alike, `caller ${by}`];
}

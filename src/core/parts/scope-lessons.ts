import type { InstantMs } from '../words/ids.ts';
import type { BreakerSettings } from '../words/member.ts';
import { ALL_CALLS, scopeKey, type Scope } from '../words/scope.ts';
import { closedBreaker, hasFailedLately } from './breaker.ts';
import { emptyCeiling } from './ceiling.ts';
import { noLag } from './lag.ts';
import { emptyPause, isPaused, RAMP_MS } from './pause.ts';
import type { Drained } from './rates.ts';
import type { Lessons } from './reports.ts';

/** Lessons about the calls of one scope. */
export interface ScopeLessons extends Lessons {
  readonly scope: Scope;
  /** When they were last refused. */
  lastAt: InstantMs;
  /** When one of them last asked for a slot. Absent: when they were last refused. */
  usedAt?: InstantMs;
  /** The only caller of these calls. Null: there are several. Absent: not known. */
  by?: string | null;
}

/** The scopes in the controls of a member. */
export interface Scopes {
  /** The calls that the member's own lessons are about. */
  about: Scope;
  readonly narrower: ScopeLessons[];
  /** Amounts that refusals of the calls in `about` took out of the member's limits of rates. Absent: none. */
  drained?: Drained;
}

/** Maximum scopes of a member. `leastNeeded` goes first. */
export const SCOPES_MAX = 64;

/** How long a pause of unknown length is remembered, so that the next one is longer. */
const OPEN_PAUSE_MS = 600_000;

export function noScopes(): Scopes {
  return { about: ALL_CALLS, narrower: [] };
}

/** Makes the lessons of a scope of which nothing was learned. */
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

/** Notes that a call of a scope asks for a slot. */
export function noteUse(lessons: ScopeLessons, caller: string, now: InstantMs): void {
  lessons.usedAt = now;
  if (lessons.by !== undefined && lessons.by !== caller) lessons.by = null;
}

/** Whether lessons change nothing any more. */
export function isForgotten(lessons: Lessons, settings: BreakerSettings, now: InstantMs): boolean {
  const { pause, lag } = lessons;
  const isKnown = pause.openMs === 0 || now - pause.notedAt > OPEN_PAUSE_MS;
  return isKnown && lag.ms === 0 && !dependsOnResults(lessons, settings, now);
}

/** Whether lessons hold calls: by a pause or the growth after it, a breaker, or a learned limit. */
export function holdsCalls({ ceiling, pause, breaker }: Lessons, now: InstantMs): boolean {
  return ceiling.slots !== null || breaker.phase !== 'closed' || now < pause.until + RAMP_MS;
}

/** Whether lessons hold calls, or may soon, so the results of these calls must be told apart from those of others. */
export function dependsOnResults(
  lessons: Lessons,
  settings: BreakerSettings,
  now: InstantMs,
): boolean {
  return holdsCalls(lessons, now) || hasFailedLately(lessons.breaker, now, settings);
}

/**
 * Picks the scope to forget when there is room for no more: one that stops no call now, if there is one. Otherwise it is one
 * of a crowd: of the scopes of one caller, and of those that differ in one name only. A caller who makes up names
 * therefore pushes out its own scopes. Among equals, the one goes that was used least recently.
 */
export function leastNeeded(all: readonly ScopeLessons[], now: InstantMs): ScopeLessons | null {
  const idle = all.filter(({ pause, breaker, ceiling }) => {
    return !isPaused(pause, now) && breaker.phase === 'closed' && ceiling.slots === null;
  });
  const crowds = new Map<string, number>();
  for (const key of all.flatMap(crowdsOf)) crowds.set(key, (crowds.get(key) ?? 0) + 1);
  const sizeOf = (one: ScopeLessons): number => {
    return crowdsOf(one).reduce((size, key) => size + (crowds.get(key) ?? 0), 0);
  };
  const [least] = (idle.length > 0 ? idle : all)
    .map((one) => ({ one, size: sizeOf(one), usedAt: one.usedAt ?? one.lastAt }))
    .toSorted((a, b) => b.size - a.size || a.usedAt - b.usedAt);
  return least?.one ?? null;
}

/** Names the sets of like scopes that a scope belongs to. */
function crowdsOf({ scope, by = null }: ScopeLessons): readonly string[] {
  const named = (['model', 'tier', 'credential'] as const).filter((name) => scope[name] !== null);
  const alike = named.map((name) => `${name} ${scopeKey({ ...scope, [name]: null })}`);
  return by === null ? alike : [...alike, `caller ${by}`];
}

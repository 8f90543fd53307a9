import type { InstantMs } from '../words/ids.ts';
import type { BreakerSettings } from '../words/member.ts';
import { ALL_CALLS, type Scope } from '../words/scope.ts';
import { closedBreaker, hasFailedLately } from './breaker.ts';
import { emptyCeiling } from './ceiling.ts';
import { noLag } from './lag.ts';
import { emptyPause, RAMP_MS } from './pause.ts';
import type { Lessons } from './reports.ts';

/** Lessons about the calls of one scope. */
export interface ScopeLessons extends Lessons {
  readonly scope: Scope;
  /** When they were last refused. */
  lastAt: InstantMs;
}

/** The scopes in the controls of a member. */
export interface Scopes {
  /** The calls that the member's own lessons are about. */
  about: Scope;
  readonly narrower: ScopeLessons[];
}

/** Maximum scopes of a member. The one that was refused least recently goes first. */
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

/** Whether lessons change nothing any more. */
export function isForgotten(
  { ceiling, pause, breaker, lag }: Lessons,
  settings: BreakerSettings,
  now: InstantMs,
): boolean {
  const isKnown = pause.openMs === 0 || now - pause.notedAt > OPEN_PAUSE_MS;
  const isOver = now >= pause.until + RAMP_MS && isKnown;
  const isClosed = breaker.phase === 'closed' && !hasFailedLately(breaker, now, settings);
  return isOver && isClosed && ceiling.slots === null && lag.ms === 0;
}

import { after, instant, type InstantMs } from '../words/ids.ts';
import type { RefusalKind } from '../words/signal.ts';
import { BoundedMap } from './bounded-map.ts';
import type { Breaker } from './breaker.ts';
import type { Ceiling } from './ceiling.ts';
import type { Lag } from './lag.ts';
import type { Pause } from './pause.ts';

/**
 * Refusals that lease holders reported. Headgate did not see these answers, so a report is a claim of its key. Its effects last
 * for at most `UNCONFIRMED_MS` from the first report of the key, and are then undone. A report of a second key, or a refusal
 * that Headgate sees itself, confirms it. A call that is served meanwhile refutes it, and the key's reports are ignored for a
 * while.
 */
export interface Reports {
  /** Null: everything that was learned is confirmed. */
  unconfirmed: Unconfirmed | null;
  /** Keys whose reports were refuted or not confirmed in time, with the time until which their reports are ignored. */
  readonly muted: BoundedMap<string, InstantMs>;
}

/** Everything that a refusal may change for longer than a minute. */
export interface Lessons {
  readonly ceiling: Ceiling;
  readonly pause: Pause;
  readonly breaker: Breaker;
  readonly lag: Lag;
}

export interface Unconfirmed {
  /** The key that reported. Empty: a caller without one. */
  readonly by: string;
  readonly about: About;
  readonly since: InstantMs;
  readonly until: InstantMs;
  /** End of the wait that was reported last. */
  askedUntil: InstantMs;
  /** End of the reported pause. A pause with another end has another cause. */
  pausedUntil: InstantMs;
  /** Copies of the state before the report. */
  readonly before: Lessons;
}

/** Refusals that can confirm each other: by a limit, or by a failing upstream. */
type About = 'limit' | 'failure';

const UNCONFIRMED_MS = 60_000;

/** How long the reports of a key are ignored after one was refuted or not confirmed in time. */
const MUTED_MS = 600_000;

const MUTED_MAX = 100;

export function noReports(): Reports {
  return { unconfirmed: null, muted: new BoundedMap(MUTED_MAX) };
}

export function aboutOf(kind: RefusalKind): About {
  return kind === 'overload' || kind === 'error' ? 'failure' : 'limit';
}

/** Starts to record the effects of a key's reports, so that they can be undone. */
export function beginUnconfirmed(
  by: string,
  about: About,
  { ceiling, pause, breaker, lag }: Lessons,
  now: InstantMs,
): Unconfirmed {
  const before = copyOf({ ceiling, pause, breaker, lag });
  return {
    by,
    about,
    since: now,
    until: after(now, UNCONFIRMED_MS),
    askedUntil: now,
    pausedUntil: now,
    before,
  };
}

/** Whether the reports of a key are ignored at present. */
export function isMuted({ muted }: Reports, by: string, now: InstantMs): boolean {
  return now < (muted.get(by) ?? 0);
}

export function mute({ muted }: Reports, by: string, now: InstantMs): void {
  muted.set(by, after(now, MUTED_MS));
}

/** Shortens the waits of unconfirmed reports, so that they end when the reports are undone. */
export function boundWaits({ pause, breaker }: Lessons, { before, until }: Unconfirmed): void {
  pause.until = instant(Math.max(before.pause.until, Math.min(pause.until, until)));
  if (breaker.phase !== 'open') return;
  const openBefore = before.breaker.phase === 'open' ? before.breaker.openUntil : 0;
  breaker.openUntil = instant(Math.max(openBefore, Math.min(breaker.openUntil, until)));
}

/** Undoes the effects of unconfirmed reports. A breaker that was not closed before keeps its state. */
export function undo(lessons: Lessons, { before }: Unconfirmed): void {
  Object.assign(lessons.ceiling, copyOf(before.ceiling));
  Object.assign(lessons.lag, copyOf(before.lag));
  lessons.pause.openMs = before.pause.openMs;
  if (before.breaker.phase === 'closed') Object.assign(lessons.breaker, copyOf(before.breaker));
}

/** Copies plain data. */
function copyOf<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(copyOf) as Value;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, part]) => [name, copyOf<unknown>(part)]);
  return Object.fromEntries(entries) as Value;
}

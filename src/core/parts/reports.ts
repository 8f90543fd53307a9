import { after, instant, type InstantMs } from '../words/ids.ts';
import type { RefusalKind } from '../words/signal.ts';
import { BoundedMap } from './bounded-map.ts';
import type { Breaker } from './breaker.ts';
import type { Ceiling } from './ceiling.ts';
import type { Lag } from './lag.ts';
import type { Pause } from './pause.ts';

/**
 * Refusals that holders of leases reported. Headgate did not see these answers, so a report is a claim of its key. What it teaches
 * lasts for `UNCONFIRMED_MS` at most, counted from the first report of the key, and is undone then. A report of a
 * second key, or a refusal that Headgate sees itself, confirms it. A call that is served meanwhile refutes it, and reports of
 * that key teach nothing for a while.
 */
export interface Reports {
  /** Null: everything that was learned is confirmed. */
  unconfirmed: Unconfirmed | null;
  /** Keys whose reports were refuted, or not confirmed in time, and until when their reports teach nothing. */
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
  /** When the wait ends that was reported last. */
  askedUntil: InstantMs;
  /** The end of the pause that was reported; another one is not the reporter's. */
  pausedUntil: InstantMs;
  /** Copies of what was known before. */
  readonly before: Lessons;
}

/** Refusals that can confirm each other: those of a limit, and those of an upstream that fails. */
type About = 'limit' | 'failure';

const UNCONFIRMED_MS = 60_000;

/** How long the reports of a key teach nothing after one was refuted or not confirmed in time. */
const MUTED_MS = 600_000;

const MUTED_MAX = 100;

export function noReports(): Reports {
  return { unconfirmed: null, muted: new BoundedMap(MUTED_MAX) };
}

export function aboutOf(kind: RefusalKind): About {
  return kind === 'overload' || kind === 'error' ? 'failure' : 'limit';
}

/** Begins to undo what the reports of a key teach from now on. */
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

/** Whether reports of a key teach nothing at present. */
export function isMuted({ muted }: Reports, by: string, now: InstantMs): boolean {
  return now < (muted.get(by) ?? 0);
}

export function mute({ muted }: Reports, by: string, now: InstantMs): void {
  muted.set(by, after(now, MUTED_MS));
}

/** Shortens waits that unconfirmed reports asked for, so that they end when those are undone. */
export function boundWaits({ pause, breaker }: Lessons, { before, until }: Unconfirmed): void {
  pause.until = instant(Math.max(before.pause.until, Math.min(pause.until, until)));
  if (breaker.phase !== 'open') return;
  const openBefore = before.breaker.phase === 'open' ? before.breaker.openUntil : 0;
  breaker.openUntil = instant(Math.max(openBefore, Math.min(breaker.openUntil, until)));
}

/** Undoes what unconfirmed reports taught. A breaker that was not closed before goes on as it is. */
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

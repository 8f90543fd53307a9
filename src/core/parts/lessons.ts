import { after, instant, type InstantMs } from '../words/ids.ts';
import type { BreakerSettings } from '../words/settings.ts';
import { ALL_CALLS, scopeKey, type Scope, type RefusalKind } from '../words/signal.ts';
import { closedBreaker, hasFailedLately, removeReported, type Breaker } from './breaker.ts';
import { emptyCeiling, type Ceiling } from './ceiling.ts';
import { noLag, type Lag } from './lag.ts';
import { emptyPause, isPaused, RAMP_MS, type Pause } from './pause.ts';
import type { Drained } from './rates.ts';
import { BoundedMap } from './bounded-map.ts';

/** Lessons from the upstream: of each scope, and from reports of lease holders until they are confirmed. */

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

/**
 * Refusals that lease holders reported. Headgate did not see these answers, so a report is a claim of its key. Its
 * effects last for at most `ALLOWED_MS` from the first report of the key, and are then reverted. A report of a second
 * key, or a refusal that Headgate sees itself, confirms it. A served call that contradicts it refutes it, and the key's
 * reports are ignored for a while.
 */
export interface Reports {
  /** null if all lessons are confirmed. */
  unconfirmed: Unconfirmed | null;
  /** The remaining time of each key. A key without an entry has all of it. */
  readonly allowances: BoundedMap<string, Allowance>;
  /** The same of callers without a gateway key, for reports that hold only calls with their own provider key. */
  readonly ofOwnKeys: BoundedMap<string, Allowance>;
}

type Allowances = Pick<Reports, 'allowances'>;

/**
 * How long unconfirmed reports of a key may still stop or slow the group. Without this bound one key could stop the
 * group with a new report each minute.
 */
interface Allowance {
  readonly leftMs: number;
  readonly renewsAt: InstantMs;
}

/** Everything that a refusal may change for longer than a minute. */
export interface Lessons {
  readonly ceiling: Ceiling;
  readonly pause: Pause;
  readonly breaker: Breaker;
  readonly lag: Lag;
}

export interface Unconfirmed {
  /** The key that reported. Empty for a caller without one. */
  readonly by: string;
  readonly about: ConfirmableRefusals;
  readonly since: InstantMs;
  readonly until: InstantMs;
  /** End of the last reported wait. */
  askedUntil: InstantMs;
  /** The reported concurrency limit. Infinity if none was reported. */
  slotsMax: number;
  /** End of the reported pause. A pause with another end has another cause. */
  pausedUntil: InstantMs;
  /** Copies of the state without the reports. */
  before: Lessons;
}

/** Refusals that can confirm each other: by a concurrency limit, by another limit, or by a failing upstream. */
type ConfirmableRefusals = 'concurrency' | 'limit' | 'failure';

/** How long unconfirmed reports of a key may stop or slow the group, and the period for which that counts. */
const ALLOWED_MS = 60_000;
const ALLOWED_EVERY_MS = 660_000;

/** How long the reports of a key are ignored after one was refuted. */
const MUTED_MS = 600_000;

const KEYS_MAX = 100;

export function noReports(): Reports {
  return {
    unconfirmed: null,
    allowances: new BoundedMap(KEYS_MAX),
    ofOwnKeys: new BoundedMap(KEYS_MAX),
  };
}

export function aboutOf(kind: RefusalKind): ConfirmableRefusals {
  if (kind === 'concurrency') return 'concurrency';
  return kind === 'overload' || kind === 'error' ? 'failure' : 'limit';
}

/** Starts to record the effects of a key's reports, so that they can be undone. */
export function beginUnconfirmed(
  by: string,
  about: ConfirmableRefusals,
  lessons: Lessons,
  forMs: number,
  now: InstantMs,
): Unconfirmed {
  return {
    by,
    about,
    since: now,
    until: after(now, forMs),
    askedUntil: now,
    slotsMax: Infinity,
    pausedUntil: now,
    before: copyOfLessons(lessons),
  };
}

/**
 * Returns where the time of a report about a scope counts, and for which key. Callers without a gateway key count as
 * one, except where a report can hold only the calls of its own caller.
 */
export function allowanceOf(
  { allowances, ofOwnKeys }: Reports,
  by: string,
  credential: string | null,
): Allowances & { readonly key: string } {
  if (by !== '' || credential === null) return { allowances, key: by };
  return { allowances: ofOwnKeys, key: credential };
}

/** Returns the remaining time of a key. 0 if its reports are currently ignored. */
export function leftMsOf({ allowances }: Allowances, by: string, now: InstantMs): number {
  const known = allowances.get(by);
  return known === undefined || now >= known.renewsAt ? ALLOWED_MS : Math.max(0, known.leftMs);
}

/** Subtracts the time of a report from the remaining time of its key. */
export function takeAllowance(reports: Allowances, by: string, ms: number, now: InstantMs): void {
  const { allowances } = reports;
  const known = allowances.get(by);
  const isKnown = known !== undefined && now < known.renewsAt;
  const renewsAt = isKnown ? known.renewsAt : after(now, ALLOWED_EVERY_MS);
  allowances.set(by, { leftMs: leftMsOf(reports, by, now) - ms, renewsAt });
}

export function mute({ allowances }: Reports, by: string, now: InstantMs): void {
  allowances.set(by, { leftMs: 0, renewsAt: after(now, MUTED_MS) });
}

/**
 * Shortens the waits that an unconfirmed report has started or extended, so that they end by `until`.
 *
 * @returns the time that the report adds: until its end if fewer calls may run at once
 */
export function boundWaits(
  lessons: Lessons,
  was: Lessons,
  until: InstantMs,
  now: InstantMs,
): number {
  const { ceiling, pause, breaker, lag } = lessons;
  pause.until = instant(Math.max(was.pause.until, Math.min(pause.until, until)));
  const hasOpened = breaker.openings > was.breaker.openings;
  if (hasOpened) {
    const openBefore = was.breaker.phase === 'open' ? was.breaker.openUntil : 0;
    breaker.openUntil = instant(Math.max(openBefore, Math.min(breaker.openUntil, until)));
  }
  const isSlower = ceiling.slots !== was.ceiling.slots || lag.ms > was.lag.ms;
  if (hasOpened || isSlower) return until - now;
  if (pause.until === was.pause.until) return 0;
  return pause.until + RAMP_MS - Math.max(now, was.pause.until + RAMP_MS);
}

export function isContradicted(
  { since, askedUntil, slotsMax }: Unconfirmed,
  grantedAt: InstantMs,
  slotsAtGrant: number,
): boolean {
  return grantedAt > since && (grantedAt < askedUntil || slotsAtGrant > slotsMax);
}

/** Undoes the effects of unconfirmed reports. A breaker that was not closed before keeps its state. */
export function undo(lessons: Lessons, { before, pausedUntil }: Unconfirmed, now: InstantMs): void {
  const { pause, breaker } = lessons;
  undoNumbers(lessons, before);
  if (breaker.phase === 'closed') removeReported(breaker);
  else if (before.breaker.phase === 'closed') Object.assign(breaker, copyOf(before.breaker));
  // After the end of a pause the slots return step by step, counted from that end.
  if (pause.until === pausedUntil && now < pausedUntil) pause.until = before.pause.until;
}

/** Undoes all effects except the waits. */
export function undoNumbers({ ceiling, lag, pause }: Lessons, before: Lessons): void {
  Object.assign(ceiling, copyOf(before.ceiling));
  Object.assign(lag, copyOf(before.lag));
  // A call served meanwhile may have reset it.
  pause.openMs = Math.min(pause.openMs, before.pause.openMs);
  pause.notedAt = before.pause.notedAt;
}

export function copyOfLessons({ ceiling, pause, breaker, lag }: Lessons): Lessons {
  return copyOf({ ceiling, pause, breaker, lag });
}

function copyOf<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(copyOf) as Value;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, part]) => [name, copyOf<unknown>(part)]);
  return Object.fromEntries(entries) as Value;
}

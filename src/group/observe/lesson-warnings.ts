import type { ScopeFields } from '../../contract/shared-shapes.ts';
import type { Raised } from '../../contract/attention.ts';
import type { Member } from '../../core/member.ts';
import type { Breaker } from '../../core/parts/breaker.ts';
import { isLong, nextProbeAt, type Pause } from '../../core/parts/pause.ts';
import { SCOPES_MAX, type Lessons } from '../../core/parts/lessons.ts';
import { aboutCalls } from '../../core/scopes.ts';
import type { GroupState } from '../../core/state.ts';
import { IMPLICIT, instant, type InstantMs, type MemberId } from '../../core/words/ids.ts';
import { scopeKey, type Scope } from '../../core/words/signal.ts';
import { scopeWords } from '../../routing/scopes-shown.ts';
import { INVARIANTS, type Invariant, type Totals } from '../../core/parts/totals.ts';
import { logEvent } from '../../runtime/log.ts';
import type { PoolIdentity } from '../definition.ts';
import { shownScope } from './scope-status.ts';

/** What is reported of an upstream that teaches lessons, and of invariants that do not hold. */

/** Maximum number of remembered pauses and breakers. Above it, those of removed scopes are forgotten. */
const SEEN_MAX = 32 * (1 + SCOPES_MAX);

/** Maximum length of a model or tier in a warning. */
const NAME_MAX = 128;

/** The calls to which lessons apply. Without a scope, all calls of the member. */
export interface LessonScope {
  readonly member: MemberId;
  readonly scope?: Scope;
}

interface SeenLessons {
  readonly pausedUntil: InstantMs;
  readonly openedAt: InstantMs;
}

const NOTHING_SEEN: SeenLessons = { pausedUntil: instant(0), openedAt: instant(0) };

type Warn = (
  kind: Raised['kind'],
  message: string,
  figures: Raised['figures'],
  now: InstantMs,
  about: LessonScope,
) => void;

/** Warns of open breakers and long pauses, for a member or for some of its calls. */
export class LessonWarnings {
  readonly #warn: Warn;
  readonly #seen = new Map<string, SeenLessons>();

  constructor(warn: Warn) {
    this.#warn = warn;
  }

  /** Starts with the current pauses and breakers, which an earlier instance has warned of. */
  begin(serving: readonly Member[]): void {
    for (const member of serving) {
      eachLessons(member, (about, { pause, breaker }) => {
        const seen = { pausedUntil: pause.until, openedAt: breaker.openedAt };
        this.#seen.set(keyOfLessons(about), seen);
      });
    }
  }

  /** Warns of new pauses and open breakers after an event. */
  note(state: GroupState, now: InstantMs): void {
    for (const member of state.serving) {
      if (member.scopes.size === 0 && isQuiet(member.controls, now)) continue;
      eachLessons(member, (about, lessons) => this.#noteOne(about, lessons, now));
    }
    if (this.#seen.size > SEEN_MAX) this.#forget(state.serving);
  }

  #noteOne(about: LessonScope, { pause, breaker }: Lessons, now: InstantMs): void {
    if (isQuiet({ pause, breaker }, now)) return;
    const key = keyOfLessons(about);
    const known = this.#seen.get(key) ?? NOTHING_SEEN;
    const isLongPause = pause.until !== known.pausedUntil && isLong(pause, now);
    const hasOpened = breaker.openedAt > known.openedAt;
    if (!isLongPause && !hasOpened) return;
    const pausedUntil = isLongPause ? pause.until : known.pausedUntil;
    this.#seen.set(key, { pausedUntil, openedAt: breaker.openedAt });
    if (hasOpened) this.#warnOfBreaker(about, breaker, now);
    // A refused probe extends the pause, which needs no second warning.
    if (isLongPause && known.pausedUntil <= now) this.#warnOfPause(about, pause, now);
  }

  #forget(serving: readonly Member[]): void {
    const present = new Set<string>();
    for (const member of serving) eachLessons(member, (about) => present.add(keyOfLessons(about)));
    for (const key of this.#seen.keys()) if (!present.has(key)) this.#seen.delete(key);
  }

  #warnOfBreaker(about: LessonScope, { openUntil, openedAt }: Breaker, now: InstantMs): void {
    const { subject, which, rest } = textParts(about);
    const message = `Too many calls${which} failed at the ${subject}. The breaker stops these calls, then probes with single calls.${rest}`;
    this.#warn('breaker_open', message, { open_ms: openUntil - openedAt }, now, about);
  }

  #warnOfPause(about: LessonScope, pause: Pause, now: InstantMs): void {
    const { subject, which, rest } = textParts(about);
    const quoted = pause.words === null ? '' : ` Its message: "${pause.words}"`;
    const probeAt = nextProbeAt(pause);
    const probed =
      probeAt === null
        ? 'Headgate does not probe the pause.'
        : 'Headgate probes the pause with single calls.';
    const until = new Date(pause.until).toISOString();
    const message = `The ${subject} refuses calls${which} until ${until}. ${probed}${rest}${quoted}`;
    this.#warn('pause_long', message, { pause_ms: pause.until - now }, now, about);
  }
}

/** Visits the lessons of a member and of each of its scopes. */
function eachLessons(member: Member, visit: (about: LessonScope, lessons: Lessons) => void): void {
  const { id, controls } = member;
  visit({ member: id, ...aboutCalls(member) }, controls);
  for (const lessons of controls.scopes.narrower) {
    visit({ member: id, scope: lessons.scope }, lessons);
  }
}

/** Whether lessons stop no calls. */
function isQuiet({ pause, breaker }: Pick<Lessons, 'pause' | 'breaker'>, now: InstantMs): boolean {
  return pause.until <= now && breaker.phase === 'closed';
}

function keyOfLessons({ member, scope }: LessonScope): string {
  return scope === undefined ? member : `${member} ${scopeKey(scope)}`;
}

/** Parts of a message: the upstream, the affected calls, and a sentence about all other calls. */
function textParts({ member, scope }: LessonScope) {
  const subject = member === IMPLICIT ? 'upstream' : `upstream of member \`${member}\``;
  if (scope === undefined) return { subject, which: '', rest: '' };
  const which = ` with ${scopeWords(boundedScope(scope))}`;
  return { subject, which, rest: ' All other calls start as usual.' };
}

/** A scope as shown, with shortened names: callers choose them. */
export function boundedScope({ model, tier, credential }: Scope): ScopeFields {
  const cut = (name: string | null) => name?.slice(0, NAME_MAX) ?? null;
  return shownScope({ model: cut(model), tier: cut(tier), credential });
}

/** Minimum interval between log lines of one invariant. Violations in between are included in the next line. */
const SILENT_MS = 1_000;

type Violations = Totals['violations'];

/** Logs violated invariants of a pool, and raises warnings about them. */
export class ViolationLog {
  readonly #identity: PoolIdentity;
  readonly #warn: (violations: Violations, now: InstantMs) => void;
  readonly #reported = new Map<Invariant, { readonly count: number; readonly at: InstantMs }>();

  constructor(identity: PoolIdentity, warn: (violations: Violations, now: InstantMs) => void) {
    this.#identity = identity;
    this.#warn = warn;
  }

  note(violations: Violations, now: InstantMs): void {
    for (const invariant of INVARIANTS) {
      if (violations[invariant] > 0) this.#report(invariant, violations, now);
    }
  }

  #report(invariant: Invariant, violations: Violations, now: InstantMs): void {
    const count = violations[invariant];
    const reported = this.#reported.get(invariant);
    const before = reported?.count ?? 0;
    if (count <= before || (reported !== undefined && now < reported.at + SILENT_MS)) return;
    this.#reported.set(invariant, { count, at: now });
    logEvent('invariant_violated', { ...this.#identity, invariant, violations: count - before });
    this.#warn(violations, now);
  }
}

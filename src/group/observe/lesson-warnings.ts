import type { CallScope } from '../../contract/scope.ts';
import type { Raised } from '../../contract/warnings.ts';
import type { Member } from '../../core/member.ts';
import type { Breaker } from '../../core/parts/breaker.ts';
import { isLong, nextProbeAt, type Pause } from '../../core/parts/pause.ts';
import type { Lessons } from '../../core/parts/reports.ts';
import { SCOPES_MAX } from '../../core/parts/scope-lessons.ts';
import { aboutCalls } from '../../core/scopes.ts';
import type { GroupState } from '../../core/state.ts';
import { IMPLICIT, instant, type InstantMs, type MemberId } from '../../core/words/ids.ts';
import { scopeKey, type Scope } from '../../core/words/scope.ts';
import { scopeWords } from '../../routing/scopes-shown.ts';
import { shownScope } from './scope-status.ts';

/** Pauses and breakers that are remembered before those of scopes that are gone are forgotten. */
const SEEN_MAX = 32 * (1 + SCOPES_MAX);

/** Longest name of a model or a tier in a warning. */
const NAME_MAX = 128;

/** The calls that lessons are about. Without a scope: all calls of the member. */
export interface About {
  readonly member: MemberId;
  readonly scope?: Scope;
}

/** The last pause and the last opening of a breaker that are known. */
interface Seen {
  readonly pausedUntil: InstantMs;
  readonly openedAt: InstantMs;
}

const NOTHING_SEEN: Seen = { pausedUntil: instant(0), openedAt: instant(0) };

type Warn = (
  kind: Raised['kind'],
  message: string,
  figures: Raised['figures'],
  now: InstantMs,
  about: About,
) => void;

/** Warns of breakers that opened and of long pauses, of a member or of some of its calls. */
export class LessonWarnings {
  readonly #warn: Warn;
  /** The pauses and breakers of members and scopes that it knows of. */
  readonly #seen = new Map<string, Seen>();

  constructor(warn: Warn) {
    this.#warn = warn;
  }

  /** Begins with what an earlier instance has warned of. */
  begin(serving: readonly Member[]): void {
    for (const member of serving) {
      eachLessons(member, (about, { pause, breaker }) => {
        const seen = { pausedUntil: pause.until, openedAt: breaker.openedAt };
        this.#seen.set(keyOfLessons(about), seen);
      });
    }
  }

  /** Warns of what an event brought about, after it. */
  note(state: GroupState, now: InstantMs): void {
    for (const member of state.serving) {
      if (member.scopes.size === 0 && isQuiet(member.controls, now)) continue;
      eachLessons(member, (about, lessons) => this.#noteOne(about, lessons, now));
    }
    if (this.#seen.size > SEEN_MAX) this.#forget(state.serving);
  }

  #noteOne(about: About, { pause, breaker }: Lessons, now: InstantMs): void {
    if (isQuiet({ pause, breaker }, now)) return;
    const key = keyOfLessons(about);
    const known = this.#seen.get(key) ?? NOTHING_SEEN;
    const isLongPause = pause.until !== known.pausedUntil && isLong(pause, now);
    const hasOpened = breaker.openedAt > known.openedAt;
    if (!isLongPause && !hasOpened) return;
    const pausedUntil = isLongPause ? pause.until : known.pausedUntil;
    this.#seen.set(key, { pausedUntil, openedAt: breaker.openedAt });
    if (hasOpened) this.#warnOfBreaker(about, breaker, now);
    // Refused probes extend a pause. That is no news.
    if (isLongPause && known.pausedUntil <= now) this.#warnOfPause(about, pause, now);
  }

  /** Forgets scopes that are gone. */
  #forget(serving: readonly Member[]): void {
    const present = new Set<string>();
    for (const member of serving) eachLessons(member, (about) => present.add(keyOfLessons(about)));
    for (const key of this.#seen.keys()) if (!present.has(key)) this.#seen.delete(key);
  }

  #warnOfBreaker(about: About, { openUntil, openedAt }: Breaker, now: InstantMs): void {
    const { whose, which, rest } = wordsOf(about);
    const message = `${whose} failed too many calls${which}. The breaker stops these calls for a while; then single calls probe it.${rest}`;
    this.#warn('breaker_open', message, { open_ms: openUntil - openedAt }, now, about);
  }

  #warnOfPause(about: About, pause: Pause, now: InstantMs): void {
    const { whose, which, rest } = wordsOf(about);
    const said = pause.words === null ? '' : ` It said: "${pause.words}"`;
    const probeAt = nextProbeAt(pause);
    const probed = probeAt === null ? 'No call probes it before.' : 'Single calls probe it before.';
    const until = new Date(pause.until).toISOString();
    const message = `${whose} refuses calls${which} until ${until}. ${probed}${rest}${said}`;
    this.#warn('pause_long', message, { pause_ms: pause.until - now }, now, about);
  }
}

/** Visits what was learned of a member, and of its calls of each scope. */
function eachLessons(member: Member, visit: (about: About, lessons: Lessons) => void): void {
  const { id, controls } = member;
  visit({ member: id, ...aboutCalls(member) }, controls);
  for (const lessons of controls.scopes.narrower) {
    visit({ member: id, scope: lessons.scope }, lessons);
  }
}

/** Whether lessons stop no call. */
function isQuiet({ pause, breaker }: Pick<Lessons, 'pause' | 'breaker'>, now: InstantMs): boolean {
  return pause.until <= now && breaker.phase === 'closed';
}

/** Tells lessons apart, whether a member or one of its scopes has them. */
function keyOfLessons({ member, scope }: About): string {
  return scope === undefined ? member : `${member} ${scopeKey(scope)}`;
}

/** Names an upstream and the calls that a warning is about, and says that no other call is affected. */
function wordsOf({ member, scope }: About) {
  const whose = member === IMPLICIT ? 'The upstream' : `The upstream of the member ${member}`;
  if (scope === undefined) return { whose, which: '', rest: '' };
  const which = ` with ${scopeWords(boundedScope(scope))}`;
  return { whose, which, rest: ' All other calls start as usual.' };
}

/** Shows a scope with names of a bounded length: callers choose them. */
export function boundedScope({ model, tier, credential }: Scope): CallScope {
  const cut = (name: string | null) => name?.slice(0, NAME_MAX) ?? null;
  return shownScope({ model: cut(model), tier: cut(tier), credential });
}

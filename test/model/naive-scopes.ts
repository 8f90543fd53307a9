import { closedBreaker, hasFailedLately, type Breaker } from '../../src/core/parts/breaker.ts';
import { emptyCeiling, type Ceiling } from '../../src/core/parts/ceiling.ts';
import { noLag, type Lag } from '../../src/core/parts/lag.ts';
import { emptyPause, type Pause } from '../../src/core/parts/pause.ts';
import { noReports, undoNumbers, type Reports } from '../../src/core/parts/lessons.ts';
import { instant } from '../../src/core/words/ids.ts';
import type { UpstreamSignal } from '../../src/core/words/signal.ts';
import type { Holder } from '../../src/core/words/ticket.ts';

/** The set of calls that match every value that is not null. */
export interface NaiveScope {
  readonly model: string | null;
  readonly tier: string | null;
  readonly credential: string | null;
}

type NaiveNames = NaiveScope & { readonly isUnread: boolean };

/** Lessons about the calls of a scope. Each part has a separate model. */
export interface NaiveLessons {
  readonly pause: Pause;
  readonly breaker: Breaker;
  readonly ceiling: Ceiling;
  readonly lag: Lag;
}

export interface NaiveNarrower extends NaiveLessons {
  readonly scope: NaiveScope;
  /** When a call of it was last refused. */
  lastAt: number;
  /** When its last call arrived. */
  usedAt: number;
  /** The callers of its calls. null if unknown. */
  readonly callers: Set<string> | null;
}

/** A member: the lessons of all its calls (or of the calls in `about`), and those of narrower scopes. */
export interface NaiveMember {
  about: NaiveScope;
  readonly own: NaiveLessons;
  narrower: NaiveNarrower[];
  reports: Reports;
  /** This instance has granted calls there, so long pauses are probed. */
  hasServed: boolean;
}

/** A refusal that a call with another value confirms. */
interface NaiveScopesRefused {
  readonly alike: string;
  readonly name: 'model' | 'credential';
  readonly value: string;
  readonly at: number;
}

/** The rules of scopes. A group without one of them must be distinguishable from one with all. */
export const RULES = {
  'a call that its scope holds blocks no other call': true,
  'a call that its scope holds delays no other call': true,
  'a line that scopes hold gains no credit': true,
  'a refusal of one credential holds only its calls': true,
  'a refusal of one tier leaves the others alone': true,
  'a second credential confirms a refusal within a minute': true,
  'the first call outside of a scope narrows what was learned': true,
  'scopes outlive a reset': true,
  'what stops calls now is forgotten last': true,
  'a caller who makes up names pushes out its own scopes': true,
};

export type ScopeRules = typeof RULES;

const ALL: NaiveScope = { model: null, tier: null, credential: null };

function nothingLearned(at: number): NaiveLessons {
  return {
    pause: emptyPause(),
    breaker: closedBreaker(),
    ceiling: emptyCeiling(instant(at)),
    lag: noLag(),
  };
}

export function copyOf({ pause, breaker, ceiling, lag }: NaiveLessons): NaiveLessons {
  return structuredClone({ pause, breaker, ceiling, lag });
}

/** The model of a read call without a model. */
function namesOf({ model, tier, credential, isUnread }: Holder): NaiveNames {
  return {
    model: model ?? (isUnread === true ? null : ''),
    tier: tier ?? null,
    credential: credential ?? null,
    isUnread: isUnread ?? false,
  };
}

function isSame(a: NaiveScope, b: NaiveScope): boolean {
  return a.model === b.model && a.tier === b.tier && a.credential === b.credential;
}

/** Whether a call is in a scope, or may be. An unread call may have any model and tier. */
export function isIn(holder: Holder, scope: NaiveScope): boolean {
  const names = namesOf(holder);
  const isModel = scope.model === names.model || (names.isUnread && names.model === null);
  const isTier = scope.tier === names.tier || (names.isUnread && names.tier === null);
  return (
    (scope.model === null || isModel) &&
    (scope.tier === null || isTier) &&
    (scope.credential === null || scope.credential === names.credential)
  );
}

/** Whether lessons hold calls now. */
function hold({ pause, breaker, ceiling }: NaiveLessons, now: number): boolean {
  return now < pause.until + 4_000 || ceiling.slots !== null || breaker.phase !== 'closed';
}

/** Whether lessons hold calls now or may do so soon. */
function mayHold(lessons: NaiveLessons, now: number): boolean {
  return hold(lessons, now) || hasFailedLately(lessons.breaker, instant(now));
}

/** Lists the lessons about a model or a tier. */
function lessonsByName(serving: readonly NaiveMember[]): readonly NaiveLessons[] {
  const all = serving.flatMap(({ about, own, narrower }) => [
    { ...own, scope: about },
    ...narrower,
  ]);
  return all.filter(({ scope }) => scope.model !== null || scope.tier !== null);
}

/** Orders scopes by the number of names, then those with a model first, then those with a tier. */
function keyOrder({ scope: { model, tier, credential } }: NaiveNarrower): number {
  return (model === null ? 0 : 4) + (tier === null ? 0 : 2) + (credential === null ? 0 : 1);
}

function noteUse(scope: NaiveNarrower, caller: string, now: number): void {
  scope.usedAt = now;
  scope.callers?.add(caller);
}

/** Counts similar scopes: those of the same caller, and for each name those that differ only in it. */
function likesOf(one: NaiveNarrower, all: readonly NaiveNarrower[]): number {
  const [only, other] = one.callers ?? [];
  const isOfOne = only !== undefined && other === undefined;
  const ofCaller = all.filter(({ callers }) => {
    return isOfOne && callers?.size === 1 && callers.has(only);
  });
  const ofNames = (['model', 'tier', 'credential'] as const).flatMap((name) => {
    if (one.scope[name] === null) return [];
    return all.filter(({ scope }) => {
      return scope[name] !== null && isSame({ ...scope, [name]: one.scope[name] }, one.scope);
    });
  });
  return ofCaller.length + ofNames.length;
}

/**
 * The scopes of a naive group, in the plainest way: lists with filters. Each refusal goes to the lessons of one scope at
 * the member that refused, and a call is held by the lessons of every scope that it is in.
 */
export class NaiveScopes {
  readonly rules: ScopeRules;
  members = new Map<string, NaiveMember>();
  /** The members that this instance has used. It forgets nothing of others. */
  readonly #met = new Set<string>();
  /** The names of all calls since the last reset, with their instants. */
  #seen: { readonly names: NaiveNames; readonly at: number }[] = [];
  #refusals: NaiveScopesRefused[] = [];
  #prunedAt = 0;

  constructor(rules: ScopeRules) {
    this.rules = rules;
  }

  /** Finds a member, or creates it without lessons. */
  member(id: string, at = 0): NaiveMember {
    this.#met.add(id);
    const known = this.members.get(id);
    if (known !== undefined) return known;
    const fresh = { about: ALL, own: nothingLearned(at), narrower: [] };
    const made = { ...fresh, reports: noReports(), hasServed: false };
    this.members.set(id, made);
    return made;
  }

  /** Restores the members that an earlier instance stored. */
  recover(written: ReadonlyMap<string, NaiveMember>): void {
    this.members = new Map(structuredClone([...written]));
    this.#met.clear();
    this.#seen = [];
    this.#refusals = [];
    this.#prunedAt = 0;
    for (const member of this.members.values()) {
      member.reports = noReports();
      member.hasServed = false;
      if (!this.rules['scopes outlive a reset']) {
        Object.assign(member, { about: ALL, narrower: [] });
      }
      for (const { pause } of this.allOf(member)) pause.probe = null;
    }
  }

  /** Forgets all lessons of a member. */
  relearn(now: number): void {
    for (const member of this.members.values()) {
      member.about = ALL;
      member.narrower = [];
      member.reports = noReports();
      Object.assign(member.own, nothingLearned(now));
    }
  }

  /** A member changes its id. The earlier id has no lessons. */
  rename(from: string, to: string, now: number): void {
    const renamed = this.member(from);
    this.members.delete(from);
    this.members.set(to, renamed);
    this.member(from, now);
  }

  allOf({ own, narrower }: NaiveMember): readonly NaiveLessons[] {
    return [own, ...narrower];
  }

  /** Lists the narrower scopes of a call at a member. */
  scopesOf({ narrower }: NaiveMember, holder: Holder): readonly NaiveNarrower[] {
    const scopes = narrower.filter(({ scope }) => isIn(holder, scope));
    const isUnread = holder.isUnread === true;
    return isUnread ? scopes : scopes.toSorted((a, b) => keyOrder(a) - keyOrder(b));
  }

  /** Whether calls at one of these members are held by their model or tier. */
  goByNames(serving: readonly NaiveMember[], now: number): boolean {
    return lessonsByName(serving).some((lessons) => mayHold(lessons, now));
  }

  /** Whether calls are held by their names now. */
  holdByNames(serving: readonly NaiveMember[], now: number): boolean {
    return lessonsByName(serving).some((lessons) => hold(lessons, now));
  }

  /** Whether a served call ends these lessons. An unread call may have another model or tier. */
  isSurelyIn(holder: Holder, lessons: NaiveLessons | NaiveNarrower): boolean {
    if (!('scope' in lessons) || holder.isUnread !== true) return true;
    const { model, tier } = lessons.scope;
    return (model === null || model === holder.model) && (tier === null || tier === holder.tier);
  }

  /** A call arrives. If it is outside the scope of the lessons, they move to their scope. */
  noteCall(holder: Holder, serving: readonly NaiveMember[], now: number): void {
    this.noteSeen(holder, now);
    const named = { ...holder, isUnread: false };
    for (const member of serving) {
      if (!isIn(holder, member.about)) this.#narrow(member, now);
      for (const each of member.narrower) {
        if (isIn(named, each.scope)) noteUse(each, holder.caller, now);
      }
    }
    if (now < this.#prunedAt + 10_000) return;
    this.#prunedAt = now;
    for (const id of this.#met) this.#prune(this.member(id), now);
  }

  /** Members begin to serve. Lessons move to their scope where calls wait outside of it. */
  separateFromWaiting(serving: readonly NaiveMember[], now: number): void {
    for (const member of serving) {
      if (!this.#areWaitingIn(member.about)) this.#narrow(member, now);
    }
  }

  #areWaitingIn(scope: NaiveScope): boolean {
    return this.waiting().every((holder) => isIn(holder, scope));
  }

  /** Lists the holders of the calls that wait. */
  waiting: () => readonly Holder[] = () => [];

  noteSeen(holder: Holder, now: number): void {
    this.#seen.push({ names: namesOf(holder), at: now });
  }

  /** Finds the lessons of the calls that a refusal is about. null if it is about that call alone. */
  lessonsFor(
    id: string,
    holder: Holder,
    { kind, scope, reportedBy }: Pick<UpstreamSignal, 'kind' | 'scope' | 'reportedBy'>,
    now: number,
  ): NaiveLessons | null {
    if (scope === 'call') return null;
    const { model, tier, credential } = namesOf(holder);
    const isOfTier = tier !== null && kind !== 'error' && kind !== 'served';
    const isOfModel = scope === 'model' || scope === 'tier' || isOfTier;
    const { rules } = this;
    let about: NaiveScope = {
      model: isOfModel ? model : null,
      tier: isOfTier && rules['a refusal of one tier leaves the others alone'] ? tier : null,
      credential: rules['a refusal of one credential holds only its calls'] ? credential : null,
    };
    const isSeen = kind !== 'served' && reportedBy === undefined;
    if (isSeen) about = this.#confirmed(id, kind, about, now);
    const member = this.member(id);
    if (isSame(member.about, about)) return member.own;
    const known = member.narrower.find((each) => isSame(each.scope, about));
    if (known !== undefined) {
      known.lastAt = now;
      noteUse(known, holder.caller, now);
      return known;
    }
    const isOfAll = isSame(about, ALL);
    const isBlank = this.#isOver(member.own, now) && member.reports.unconfirmed === null;
    if (isBlank && (isOfAll || (this.areAllIn(about, now) && this.#areWaitingIn(about)))) {
      member.about = about;
      return member.own;
    }
    if (!isOfAll) {
      const fresh = { scope: about, lastAt: now, usedAt: now, callers: new Set([holder.caller]) };
      return this.#add(member, { ...fresh, ...nothingLearned(now) }, now);
    }
    this.#narrow(member, now);
    return member.own;
  }

  /** A refusal of another credential, or of another model without a cause, widens the scope. */
  #confirmed(id: string, kind: string, about: NaiveScope, now: number): NaiveScope {
    let wide = about;
    for (const name of ['credential', 'model'] as const) {
      const value = wide[name];
      if (value === null || (name === 'model' && kind !== 'error' && kind !== 'unknown')) continue;
      const wider = { ...wide, [name]: null };
      const alike = JSON.stringify([id, kind, name, wider]);
      const last = this.#refusals.find((each) => each.alike === alike);
      const others = this.#refusals.filter((each) => each !== last);
      this.#refusals = [...others, { alike, name, value, at: now }];
      const isWithin = last !== undefined && now - last.at <= 60_000;
      const mayConfirm =
        name === 'model' || this.rules['a second credential confirms a refusal within a minute'];
      if (isWithin && last.value !== value && mayConfirm) wide = wider;
    }
    return wide;
  }

  /** A served call cancels the confirmation of refusals with another value. */
  contradict(holder: Holder): void {
    const names = namesOf(holder);
    this.#refusals = this.#refusals.filter(({ name, value }) => {
      const isKnown = name === 'credential' || !names.isUnread;
      return !isKnown || names[name] === value;
    });
  }

  /** Whether all calls of the last ten minutes, and the last one before, are in a scope. */
  areAllIn(scope: NaiveScope, now: number): boolean {
    return (['model', 'tier', 'credential'] as const).every((name) => {
      if (scope[name] === null) return true;
      const seen = this.#seen.filter(({ names }) => name === 'credential' || !names.isUnread);
      const last = seen.at(-1);
      if (last === undefined) return true;
      const changes = seen.filter((each, index) => {
        const before = seen[index - 1];
        return before !== undefined && before.names[name] !== each.names[name];
      });
      const changedAt = changes.at(-1)?.at ?? -Infinity;
      return last.names[name] === scope[name] && now - changedAt >= 600_000;
    });
  }

  #narrow(member: NaiveMember, now: number): void {
    if (!this.rules['the first call outside of a scope narrows what was learned']) return;
    const { own, about, reports } = member;
    member.about = ALL;
    // Of a report, only its wait moves.
    if (reports.unconfirmed !== null) undoNumbers(own, reports.unconfirmed.before);
    reports.unconfirmed = null;
    if (this.#isOver(own, now)) return;
    const moved = { ...copyOf(own), scope: about, lastAt: now, usedAt: now, callers: null };
    Object.assign(own, nothingLearned(now));
    this.onMoved(own, this.#add(member, moved, now));
  }

  /** Moves the lessons of a member to a scope. */
  onMoved: (own: NaiveLessons, moved: NaiveNarrower) => void = () => {};

  #add(member: NaiveMember, lessons: NaiveNarrower, now: number): NaiveNarrower {
    if (member.narrower.length >= 64) this.#prune(member, now);
    if (member.narrower.length >= 64) {
      const gone = this.#leastNeeded(member.narrower, now);
      member.narrower = member.narrower.filter((each) => each !== gone);
    }
    member.narrower.push(lessons);
    return lessons;
  }

  /**
   * Of the scopes that stop nothing, or else of all: the one with the most similar ones, then the least recently used.
   */
  #leastNeeded(all: readonly NaiveNarrower[], now: number): NaiveNarrower | undefined {
    const idle = all.filter(
      ({ pause, breaker, ceiling }) =>
        now >= pause.until && breaker.phase === 'closed' && ceiling.slots === null,
    );
    const isFirst = this.rules['what stops calls now is forgotten last'] && idle.length > 0;
    const isByLikes = this.rules['a caller who makes up names pushes out its own scopes'];
    const ranked = (isFirst ? idle : all).map((one) => {
      return { one, likes: isByLikes ? likesOf(one, all) : 0 };
    });
    const sorted = ranked.toSorted((a, b) => b.likes - a.likes || a.one.usedAt - b.one.usedAt);
    return sorted[0]?.one;
  }

  /** Removes scopes that hold no calls, or were not refused for an hour and are not paused. */
  #prune(member: NaiveMember, now: number): void {
    member.narrower = member.narrower.filter(
      (each) =>
        !this.#isOver(each, now) && (now - each.lastAt <= 3_600_000 || now < each.pause.until),
    );
    if (this.#isOver(member.own, now)) member.about = ALL;
  }

  #isOver({ pause, breaker, ceiling, lag }: NaiveLessons, now: number): boolean {
    if (now < pause.until + 4_000 || ceiling.slots !== null || lag.ms !== 0) return false;
    if (pause.openMs > 0 && now - pause.notedAt <= 600_000) return false;
    return breaker.phase === 'closed' && !hasFailedLately(breaker, instant(now));
  }
}

import {
  allows,
  closedBreaker,
  hasFailedLately,
  keepProbes,
  nextChangeAt as breakerChangesAt,
  noteEnded as breakerEnded,
  noteFailed,
  noteGranted as breakerGranted,
  noteServed as breakerServed,
  type Breaker,
} from '../../../src/core/parts/breaker.ts';
import {
  emptyCeiling,
  noteConcurrencyRefusal,
  noteOverload,
  noteServed as ceilingServed,
  slotsMaxNow,
  type Ceiling,
  type CeilingSettings,
} from '../../../src/core/parts/ceiling.ts';
import { noteAccepted } from '../../../src/core/parts/evidence.ts';
import {
  emptyPause,
  mayProbe,
  nextChangeAt as pauseChangesAt,
  noteEnded as pauseEnded,
  noteGranted as pauseGranted,
  noteRefused as pauseRefused,
  noteServed as pauseServed,
  pauseFor,
  rampSlotsMax,
  setProbing,
  stopsUntil,
  type Pause,
} from '../../../src/core/parts/pause.ts';
import { instant, leaseIdOf, ticketId, type LeaseId } from '../../../src/core/words/ids.ts';
import type { UpstreamSignal } from '../../../src/core/words/signal.ts';
import type { Lane } from '../../../src/core/words/ticket.ts';

/** A set of calls: those with every value that is not null. */
export interface NaiveScope {
  readonly model: string | null;
  readonly tier: string | null;
  readonly credential: string | null;
}

/** A call as far as its order and its scopes need it. All calls are of one tenant. */
export interface NaiveCall {
  readonly name: string;
  readonly caller: string;
  readonly names: NaiveScope & { readonly isUnread: boolean };
  readonly lane: Lane;
  readonly slots: number;
  readonly wait: boolean;
  readonly enqueuedAt: number;
  readonly deadlineAt: number;
}

/** Lessons about the calls of a scope. The parts have models of their own. */
interface Lessons {
  pause: Pause;
  breaker: Breaker;
  ceiling: Ceiling;
}

interface Narrower extends Lessons {
  readonly scope: NaiveScope;
  lastAt: number;
  usedAt: number;
  /** The callers of its calls. Null: not known. */
  readonly callers: Set<string> | null;
}

interface Lease extends NaiveCall {
  names: NaiveCall['names'];
  at: string;
  readonly grantedAt: number;
  isRefused: boolean;
  hasAnswer: boolean;
  /** Slots at the upstream at its grant, by the lessons that count them. */
  readonly atGrant: Map<Lessons, number>;
}

/** One member: the lessons of all its calls (or of the calls in `about`), and those of narrower scopes. */
interface Place {
  id: string;
  slotsMax: number;
  about: NaiveScope;
  own: Lessons;
  narrower: Narrower[];
  unclaimed: number;
}

/** A refusal that a call with another value confirms. */
interface Refused {
  readonly alike: string;
  readonly name: 'model' | 'credential';
  readonly value: string;
  readonly at: number;
}

/** The rules of scopes. A group without one of them must be told from one with all. */
export const RULES = {
  'a call that its scope holds blocks no other call': true,
  'a refusal of one credential holds only its calls': true,
  'a second credential confirms a refusal within a minute': true,
  'the first call outside of a scope narrows what was learned': true,
  'scopes outlive a reset': true,
  'what stops calls now is forgotten last': true,
  'a caller who makes up names pushes out its own scopes': true,
};

export type ScopeRules = typeof RULES;

const ALL: NaiveScope = { model: null, tier: null, credential: null };

const LANES = ['high', 'normal', 'low'];

function none(now: number): Lessons {
  return {
    pause: emptyPause(),
    breaker: closedBreaker(),
    ceiling: emptyCeiling(instant(now)),
  };
}

function isSame(a: NaiveScope, b: NaiveScope): boolean {
  return a.model === b.model && a.tier === b.tier && a.credential === b.credential;
}

/** Whether a call is in a scope, or may be. A call whose body was not read may name any model and tier. */
function isIn(names: NaiveCall['names'], scope: NaiveScope): boolean {
  const isModel = scope.model === names.model || (names.isUnread && names.model === null);
  const isTier = scope.tier === names.tier || (names.isUnread && names.tier === null);
  return (
    (scope.model === null || isModel) &&
    (scope.tier === null || isTier) &&
    (scope.credential === null || scope.credential === names.credential)
  );
}

/**
 * A group whose upstreams refuse calls, by scopes, in the plainest way: lists with filters. Each refusal goes to the
 * lessons of one scope, and a call is held by the lessons of every scope that it is in.
 */
export class NaiveScopes {
  waiters: NaiveCall[] = [];
  leases: Lease[] = [];
  places: Place[];
  grantsFrom = 0;
  #unclaimedUntil = 0;
  #isSettled = true;
  #isAdaptive = true;
  readonly #isSplit: boolean;
  #granted: string[] = [];
  /** The names of all calls since the last reset, with their instants. */
  #seen: { readonly names: NaiveScope; readonly isUnread: boolean; readonly at: number }[] = [];
  #refusals: Refused[] = [];
  #prunedAt = 0;
  readonly #rules: ScopeRules;

  constructor(members: readonly { id: string; slotsMax: number }[], now: number, rules = RULES) {
    this.#rules = rules;
    this.#isSplit = members.length > 1;
    this.places = members.map(({ id, slotsMax }) => {
      return { id, slotsMax, about: ALL, own: none(now), narrower: [], unclaimed: 0 };
    });
  }

  ask(call: NaiveCall, now: number): string[] {
    const answers = this.#begin(now);
    if (call.names.isUnread && this.#goesByNames()) return [...answers, `unread ${call.name}`];
    this.#noteCall(call, now);
    this.waiters.push(call);
    answers.push(...this.#grantAll(now));
    if (this.waiters.includes(call)) {
      const why = this.#stoppedBy(call, now) ?? (call.wait ? null : 'busy');
      if (why !== null) answers.push(this.#reject(call, why));
    }
    return this.#finish(answers, now);
  }

  end(name: string, isSuccess: boolean, now: number): string[] {
    const answers = this.#begin(now);
    const lease = this.#lease(name);
    if (isSuccess && !lease.hasAnswer) {
      this.#contradict(lease.names);
      for (const lessons of this.#lessonsOf(lease)) {
        const { breaker, ceiling } = lessons;
        const slotsAtGrant = lease.atGrant.get(lessons) ?? 0;
        const grantedAt = instant(lease.grantedAt);
        breakerServed(breaker, { leaseId: idOf(name), grantedAt }, instant(now));
        noteAccepted(ceiling.evidence, { grantedAt, slotsAtGrant }, instant(now));
      }
    }
    for (const { breaker, pause } of this.#lessonsOf(lease)) {
      breakerEnded(breaker, idOf(name), false, instant(now));
      pauseEnded(pause, idOf(name));
    }
    this.leases = this.leases.filter((each) => each !== lease);
    return this.#finish([...answers, `ended ${name}.1`], now);
  }

  report(name: string, signal: UpstreamSignal, isRepeat: boolean, at: number): string[] {
    const now = instant(at);
    const answers = this.#begin(now);
    const lease = this.#lease(name);
    if (signal.kind !== 'served') lease.isRefused = true;
    if (signal.names !== undefined && lease.names.isUnread) this.#read(lease, signal.names, now);
    lease.hasAnswer = true;
    const call = { leaseId: idOf(name), grantedAt: instant(lease.grantedAt) };
    if (signal.kind === 'served') {
      this.#contradict(lease.names);
      for (const lessons of this.#lessonsOf(lease)) {
        const { breaker, ceiling, pause } = lessons;
        const slotsAtGrant = lease.atGrant.get(lessons) ?? 0;
        const slotsInUse = this.#atUpstream(lease.at, lessons);
        const served = { grantedAt: call.grantedAt, slotsAtGrant, slotsInUse };
        ceilingServed(ceiling, this.#settings(lease.at), served, now);
        breakerServed(breaker, call, now);
        pauseServed(pause, { ...call, isMistake: false }, now);
      }
      if (signal.retryAfterMs !== null && signal.retryAfterMs > 0) {
        const { pause } = this.#lessonsFor(lease, { ...signal, scope: 'credential' }, now) ?? {};
        const { grantedAt } = call;
        const { retryAfterMs } = signal;
        if (pause) pauseFor(pause, { grantedAt, retryAfterMs, isLongWindow: false }, now);
      }
      return this.#finish(answers, now);
    }
    if (signal.kind === 'never_fits') return this.#finish(answers, now);
    for (const { pause } of this.#lessonsOf(lease)) pauseRefused(pause, call.leaseId, now);
    // These say nothing of other calls before another member has served this one.
    if (['quota', 'unauthorized'].includes(signal.kind)) return this.#finish(answers, now);
    const lessons = this.#lessonsFor(lease, signal, now);
    if (lessons !== null) this.#learn(lease, lessons, signal, isRepeat, now);
    return this.#finish(answers, now);
  }

  tick(now: number): string[] {
    return this.#finish(this.#begin(now), now);
  }

  /** An operator has the group learn again, or sets other limits. */
  relearn(now: number): string[] {
    const answers = this.#begin(now);
    for (const place of this.places) this.#forget(place, now);
    return this.#finish(answers, now);
  }

  reconfigure(slotsMax: number, isAdaptive: boolean, now: number): string[] {
    const answers = this.#begin(now);
    for (const place of this.places) place.slotsMax = slotsMax;
    this.#isAdaptive = isAdaptive;
    this.#probe(now);
    return this.#finish(answers, now);
  }

  /** A member has another id from now on. What was at the upstream of its scopes is not known any more. */
  rename(from: string, to: string, now: number): string[] {
    const answers = this.#begin(now);
    const place = this.#place(from);
    place.id = to;
    for (const lease of this.leases.filter(({ at }) => at === from)) {
      lease.at = to;
      for (const scope of place.narrower) lease.atGrant.delete(scope);
    }
    this.#granted = this.#granted.map((id) => (id === from ? to : id));
    this.#probe(now);
    return this.#finish(answers, now);
  }

  /**
   * A new instance starts, with so many slots of leases that its holders have yet to claim. It knows what was learned, and
   * not which calls there were.
   */
  reset(unclaimed: ReadonlyMap<string, number>, until: number, grantsFrom: number, now: number) {
    this.leases = [];
    this.waiters = [];
    this.#seen = [];
    this.#refusals = [];
    this.#prunedAt = 0;
    this.#granted.length = 0;
    this.grantsFrom = grantsFrom;
    this.#unclaimedUntil = until;
    this.#isSettled = false;
    for (const place of this.places) {
      place.unclaimed = unclaimed.get(place.id) ?? 0;
      if (!this.#rules['scopes outlive a reset']) this.#forget(place, now);
      for (const { pause } of [place.own, ...place.narrower]) pause.probe = null;
    }
    this.#probe(now);
    this.#settle(now);
  }

  resume({ name, ...call }: Lease, now: number): string[] {
    const answers = this.#begin(now);
    const place = this.#place(call.at);
    place.unclaimed -= Math.min(place.unclaimed, call.slots);
    const fresh = { isRefused: false, hasAnswer: false, atGrant: new Map() };
    this.leases.push({ name, ...call, ...fresh });
    return this.#finish([...answers, `grant ${name}.1`], now);
  }

  /** The next instant at which time alone may change something. */
  dueAt(now: number): number {
    const dues = [this.grantsFrom, this.#unclaimedUntil];
    for (const { deadlineAt } of this.waiters) dues.push(deadlineAt);
    for (const { own, narrower } of this.places) {
      for (const { pause, breaker } of [own, ...narrower]) {
        const ramp = [pause.until + 2_000, pause.until + 4_000];
        dues.push(pause.until, pause.probeAt, breaker.openUntil, ...ramp);
      }
    }
    return Math.min(...dues.filter((at) => at > now));
  }

  /** Until when each lessons stop calls, before an event. */
  #stops = new Map<string, number>();

  #stopsAt(now: number): Map<string, number> {
    const untilOf = (lessons: Lessons): number => this.#blockOf(lessons, now)?.until ?? 0;
    const ofEach = this.places.flatMap(({ id, own, narrower }) => [
      [id, untilOf(own)] as const,
      ...narrower.map((each) => [JSON.stringify([id, each.scope]), untilOf(each)] as const),
    ]);
    return new Map(ofEach);
  }

  #begin(now: number): string[] {
    this.#stops = this.#stopsAt(now);
    if (now >= this.#unclaimedUntil) for (const place of this.places) place.unclaimed = 0;
    this.#settle(now);
    const late = this.waiters.filter(({ deadlineAt }) => now >= deadlineAt);
    return late.map((call) => {
      const block = this.#blockFor(call, now);
      const isTimeout = block === null || block.reason === 'breaker_open';
      return this.#reject(call, isTimeout ? 'queue_timeout' : this.#causeOf(call, block, now));
    });
  }

  #finish(answers: readonly string[], now: number): string[] {
    this.#settle(now);
    const told = [...answers, ...this.#dropStopped(now)];
    // A grant may probe a pause, and so stop other calls.
    for (;;) {
      const granted = this.#grantAll(now);
      if (granted.length === 0) return told;
      told.push(...granted, ...this.#dropStopped(now));
    }
  }

  /** Rejects calls that cannot wait, if some are stopped for longer than at the last look. */
  #dropStopped(now: number): string[] {
    const before = this.#stops;
    this.#stops = this.#stopsAt(now);
    const isLonger = [...this.#stops].some(([key, until]) => until > (before.get(key) ?? 0));
    return (isLonger ? this.waiters : []).flatMap((call) => {
      const why = this.#stoppedBy(call, now);
      return why === null ? [] : this.#reject(call, why);
    });
  }

  /** Once nothing is unclaimed, probes of leases that were not claimed are over. */
  #settle(now: number): void {
    if (this.#isSettled || this.places.some(({ unclaimed }) => unclaimed > 0)) return;
    this.#isSettled = true;
    this.#unclaimedUntil = now;
    for (const { own, narrower } of this.places) {
      for (const { breaker } of [own, ...narrower]) {
        keepProbes(breaker, (id) => this.leases.some(({ name }) => idOf(name) === id));
      }
    }
  }

  #probe(now: number): void {
    for (const { own, narrower } of this.places) {
      for (const { pause } of [own, ...narrower]) setProbing(pause, true, instant(now));
    }
  }

  #forget(place: Place, now: number): void {
    place.about = ALL;
    place.narrower = [];
    const before = place.own;
    place.own = none(now);
    for (const { atGrant } of this.leases) atGrant.set(place.own, atGrant.get(before) ?? 0);
  }

  #reject(call: NaiveCall, why: string): string {
    this.waiters = this.waiters.filter((each) => each !== call);
    return `reject ${call.name} ${why}`;
  }

  #goesByNames(): boolean {
    return this.places.some(({ about, narrower }) =>
      [about, ...narrower.map(({ scope }) => scope)].some((scope) => {
        return scope.model !== null || scope.tier !== null;
      }),
    );
  }

  // What a refusal is about.

  #lessonsFor(lease: Lease, { kind, scope }: UpstreamSignal, now: number): Lessons | null {
    if (scope === 'call') return null;
    const { model, tier, credential } = lease.names;
    const isOfTier = tier !== null && kind !== 'error' && kind !== 'served';
    const isOfModel = scope === 'model' || scope === 'tier' || isOfTier;
    let about: NaiveScope = {
      model: isOfModel ? model : null,
      tier: isOfTier ? tier : null,
      credential: this.#rules['a refusal of one credential holds only its calls']
        ? credential
        : null,
    };
    if (kind !== 'served') about = this.#confirmed(lease.at, kind, about, now);
    const place = this.#place(lease.at);
    if (isSame(place.about, about)) return place.own;
    const known = place.narrower.find((each) => isSame(each.scope, about));
    if (known !== undefined) {
      known.lastAt = now;
      this.#use(known, lease.caller, now);
      return known;
    }
    const isOfAll = isSame(about, ALL);
    if (this.#isOver(place.own, now) && (isOfAll || this.#areAllIn(about, now))) {
      place.about = about;
      return place.own;
    }
    if (!isOfAll) {
      const callers = new Set([lease.caller]);
      const at = { lastAt: now, usedAt: now };
      return this.#add(place, { scope: about, ...at, callers, ...none(now) }, now);
    }
    this.#narrow(place, now);
    return place.own;
  }

  /** A refusal of another credential, or of another model where the cause is not named, widens the scope. */
  #confirmed(at: string, kind: string, about: NaiveScope, now: number): NaiveScope {
    let wide = about;
    for (const name of ['credential', 'model'] as const) {
      const value = wide[name];
      if (value === null || (name === 'model' && kind !== 'error' && kind !== 'unknown')) continue;
      const wider = { ...wide, [name]: null };
      const alike = JSON.stringify([at, kind, name, wider]);
      const last = this.#refusals.find((each) => each.alike === alike);
      const others = this.#refusals.filter((each) => each !== last);
      this.#refusals = [...others, { alike, name, value, at: now }];
      const isWithin = last !== undefined && now - last.at <= 60_000;
      const mayConfirm =
        name === 'model' || this.#rules['a second credential confirms a refusal within a minute'];
      if (isWithin && last.value !== value && mayConfirm) wide = wider;
    }
    return wide;
  }

  #contradict(names: NaiveCall['names']): void {
    this.#refusals = this.#refusals.filter(({ name, value }) => {
      const isKnown = name === 'credential' || !names.isUnread;
      return !isKnown || names[name] === value;
    });
  }

  /** Whether all calls that were seen in the last ten minutes are in a scope, and the last one before. */
  #areAllIn(scope: NaiveScope, now: number): boolean {
    return (['model', 'tier', 'credential'] as const).every((name) => {
      if (scope[name] === null) return true;
      const seen = this.#seen.filter(({ isUnread }) => name === 'credential' || !isUnread);
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

  /** A call comes: where it is outside of what was learned, that holds only the calls that it is about. */
  #noteCall({ names, caller }: NaiveCall, now: number): void {
    this.#seen.push({ names, isUnread: names.isUnread, at: now });
    for (const place of this.places) {
      if (!isIn(names, place.about)) this.#narrow(place, now);
      for (const each of place.narrower) {
        if (isIn({ ...names, isUnread: false }, each.scope)) this.#use(each, caller, now);
      }
    }
    if (now < this.#prunedAt + 10_000) return;
    this.#prunedAt = now;
    for (const place of this.places) this.#prune(place, now);
  }

  #use(scope: Narrower, caller: string, now: number): void {
    scope.usedAt = now;
    scope.callers?.add(caller);
  }

  #narrow(place: Place, now: number): void {
    if (!this.#rules['the first call outside of a scope narrows what was learned']) return;
    const { own, about } = place;
    place.about = ALL;
    if (this.#isOver(own, now)) return;
    place.own = none(now);
    for (const lease of this.leases) {
      const slotsAtGrant = lease.atGrant.get(own);
      if (slotsAtGrant !== undefined) lease.atGrant.set(place.own, slotsAtGrant);
    }
    const moved = { ...own, scope: about, lastAt: now, usedAt: now, callers: null };
    for (const lease of this.leases) {
      const slotsAtGrant = lease.atGrant.get(own);
      if (slotsAtGrant !== undefined) lease.atGrant.set(moved, slotsAtGrant);
    }
    this.#add(place, moved, now);
  }

  #add(place: Place, lessons: Narrower, now: number): Narrower {
    if (place.narrower.length >= 64) this.#prune(place, now);
    if (place.narrower.length >= 64) {
      const gone = this.#leastNeeded(place.narrower, now);
      place.narrower = place.narrower.filter((each) => each !== gone);
    }
    place.narrower.push(lessons);
    return lessons;
  }

  /** Of the scopes that stop nothing now, or else of all, the one with the most others like it, then the one used longest ago. */
  #leastNeeded(all: readonly Narrower[], now: number): Narrower | undefined {
    const idle = all.filter(
      ({ pause, breaker, ceiling }) =>
        now >= pause.until && breaker.phase === 'closed' && ceiling.slots === null,
    );
    const isFirst = this.#rules['what stops calls now is forgotten last'] && idle.length > 0;
    const pool = isFirst ? idle : all;
    const likeOf = (one: Narrower): number => {
      if (!this.#rules['a caller who makes up names pushes out its own scopes']) return 0;
      const [only, other] = one.callers ?? [];
      const ofCaller = all.filter(({ callers }) => {
        return (
          other === undefined && callers?.size === 1 && only !== undefined && callers.has(only)
        );
      });
      const names = (['model', 'tier', 'credential'] as const).filter(
        (name) => one.scope[name] !== null,
      );
      const ofNames = names.flatMap((name) =>
        all.filter(({ scope }) => {
          return scope[name] !== null && isSame({ ...scope, [name]: one.scope[name] }, one.scope);
        }),
      );
      return ofCaller.length + ofNames.length;
    };
    const likes = new Map(pool.map((one) => [one, likeOf(one)]));
    return pool.toSorted(
      (a, b) => (likes.get(b) ?? 0) - (likes.get(a) ?? 0) || a.usedAt - b.usedAt,
    )[0];
  }

  /** Forgets what holds no call any more, and what was not refused for an hour and is not paused. */
  #prune(place: Place, now: number): void {
    place.narrower = place.narrower.filter(
      (each) =>
        !this.#isOver(each, now) && (now - each.lastAt <= 3_600_000 || now < each.pause.until),
    );
    if (this.#isOver(place.own, now)) place.about = ALL;
  }

  #isOver({ pause, breaker, ceiling }: Lessons, now: number): boolean {
    if (now < pause.until + 4_000 || ceiling.slots !== null) return false;
    if (pause.openMs > 0 && now - pause.notedAt <= 600_000) return false;
    return breaker.phase === 'closed' && !hasFailedLately(breaker, instant(now));
  }

  #read(lease: Lease, { model, tier }: NonNullable<UpstreamSignal['names']>, now: number): void {
    lease.names = { model, tier, credential: lease.names.credential, isUnread: false };
    for (const each of this.#place(lease.at).narrower) lease.atGrant.delete(each);
    this.#seen.push({ names: lease.names, isUnread: false, at: now });
  }

  #learn(
    { name, grantedAt: granted, at }: Lease,
    lessons: Lessons,
    signal: UpstreamSignal,
    isRepeat: boolean,
    millis: number,
  ): void {
    const { kind, slotsMax: namedSlotsMax } = signal;
    const { pause, breaker, ceiling } = lessons;
    const retryAfterMs = signal.retryAfterMs === 0 ? null : signal.retryAfterMs;
    const [grantedAt, now] = [instant(granted), instant(millis)];
    const place = this.#place(at);
    const unclaimed = lessons === place.own ? place.unclaimed : 0;
    const othersInUse = this.#atUpstream(at, lessons) + unclaimed;
    const refused = { ticketId: ticketId(name), grantedAt, othersInUse };
    const settings = this.#settings(at);
    const stop = (isLongWindow: boolean): void => {
      if (isRepeat) return;
      const isOverload = kind === 'overload';
      const cause = { grantedAt, retryAfterMs, isLongWindow, isOverload, words: null };
      pauseFor(pause, { ...cause, isProbed: true }, now);
    };
    const failed = { leaseId: idOf(name), grantedAt, retryAfterMs };
    if (kind === 'concurrency') {
      noteConcurrencyRefusal(ceiling, settings, { ...refused, namedSlotsMax }, now);
    }
    if (kind === 'overload' || kind === 'ramp') noteOverload(ceiling, settings, refused, now);
    if (kind === 'overload' || kind === 'error') noteFailed(breaker, failed, now);
    if (kind === 'overload' && retryAfterMs !== null) stop(false);
    if (['ramp', 'requests', 'tokens', 'unknown'].includes(kind)) stop(false);
    if (kind === 'long_window' && retryAfterMs !== null) stop(true);
  }

  // Who is held, and who goes.

  #place(id: string): Place {
    const place = this.places.find((each) => each.id === id);
    if (place === undefined) throw new Error(`${id} is no member`);
    return place;
  }

  #lease(name: string): Lease {
    const lease = this.leases.find((each) => each.name === name);
    if (lease === undefined) throw new Error(`${name} has no lease`);
    return lease;
  }

  #scopesOf({ narrower }: Place, { names }: Pick<NaiveCall, 'names'>): readonly Narrower[] {
    const scopes = narrower.filter(({ scope }) => isIn(names, scope));
    return names.isUnread ? scopes : scopes.toSorted((a, b) => keyOrder(a) - keyOrder(b));
  }

  #lessonsOf(lease: Lease): readonly Lessons[] {
    const place = this.#place(lease.at);
    return [place.own, ...this.#scopesOf(place, lease)];
  }

  #settings(at: string): CeilingSettings {
    return { slotsMax: this.#place(at).slotsMax, isHard: true, isAdaptive: this.#isAdaptive };
  }

  #counted(at: string, lessons: Lessons): readonly Lease[] {
    const here = this.leases.filter((lease) => lease.at === at);
    const scope = this.#place(at).narrower.find((each) => each === lessons)?.scope;
    return scope === undefined ? here : here.filter(({ names }) => isIn(names, scope));
  }

  #inUse(at: string, lessons: Lessons): number {
    const place = this.#place(at);
    const unclaimed = lessons === place.own ? place.unclaimed : 0;
    return this.#counted(at, lessons).reduce((sum, { slots }) => sum + slots, unclaimed);
  }

  #atUpstream(at: string, lessons: Lessons): number {
    const there = this.#counted(at, lessons).filter(({ isRefused }) => !isRefused);
    return there.reduce((sum, { slots }) => sum + slots, 0);
  }

  /** The slots that calls of some lessons may use: a narrower scope never more than its member. */
  #slotsMax(place: Place, lessons: Lessons): number {
    const most = slotsMaxNow(place.own.ceiling, this.#settings(place.id));
    if (lessons === place.own || lessons.ceiling.slots === null) return most;
    return Math.min(most, slotsMaxNow(lessons.ceiling, this.#settings(place.id)));
  }

  #roomAt(place: Place, lessons: Lessons, slots: number, at: number): number {
    const now = instant(at);
    const { pause, breaker } = lessons;
    const inUse = this.#inUse(place.id, lessons);
    const most = this.#slotsMax(place, lessons);
    let roomAt = at;
    if (inUse + slots > rampSlotsMax(pause, most, now)) {
      if (inUse > 0 && inUse + slots > most) return Infinity;
      roomAt = Math.max(roomAt, inUse > 0 ? pauseChangesAt(pause, most, now) : stopsUntil(pause));
    }
    return allows(breaker, now) ? roomAt : Math.max(roomAt, breakerChangesAt(breaker, now));
  }

  /** Finds the scope at a member that has no room for a call. */
  #heldBy(place: Place, call: NaiveCall, now: number): Narrower | undefined {
    return this.#scopesOf(place, call).find(
      (scope) => this.#roomAt(place, scope, call.slots, now) > now,
    );
  }

  #blockOf({ pause, breaker }: Lessons, at: number): Block | null {
    const now = instant(at);
    const until = breakerChangesAt(breaker, now);
    if (until !== Infinity && until > pause.until) return { reason: 'breaker_open', until };
    const isClosed = now < pause.until && !mayProbe(pause, now);
    return isClosed ? { reason: 'paused', until: pause.until } : null;
  }

  /** Why all members stop a call, and until when the first one does. */
  #blockFor(call: NaiveCall, now: number): Block | null {
    const ofEach = this.places.map((place) => {
      const all = [place.own, ...this.#scopesOf(place, call)];
      const blocks = all.flatMap((lessons) => this.#blockOf(lessons, now) ?? []);
      return blocks.toSorted((a, b) => b.until - a.until)[0] ?? null;
    });
    if (ofEach.includes(null)) return null;
    return ofEach.flatMap((block) => block ?? []).toSorted((a, b) => a.until - b.until)[0] ?? null;
  }

  #stoppedBy(call: NaiveCall, now: number): string | null {
    const block = this.#blockFor(call, now);
    const patientUntil = call.wait ? call.deadlineAt : now;
    return block !== null && block.until > patientUntil ? this.#causeOf(call, block, now) : null;
  }

  /** A pause for a limit of some member is told as such, and one for an overload as a pause. */
  #causeOf(call: NaiveCall, { reason }: Block, now: number): string {
    const all = this.places.flatMap((place) => [place.own, ...this.#scopesOf(place, call)]);
    const isLimited = all.some(({ pause }) => now < pause.until && !pause.isOverload);
    return reason === 'paused' && isLimited ? 'upstream_limited' : reason;
  }

  #grantAll(now: number): string[] {
    const answers: string[] = [];
    for (let next = this.#next(now); next !== null; next = this.#next(now)) {
      const { call, place } = next;
      this.waiters = this.waiters.filter((each) => each !== call);
      const fresh = { isRefused: false, hasAnswer: false, atGrant: new Map() };
      const lease: Lease = { ...call, at: place.id, grantedAt: now, ...fresh };
      this.leases.push(lease);
      this.#granted.push(place.id);
      for (const lessons of this.#lessonsOf(lease)) {
        lease.atGrant.set(lessons, this.#atUpstream(place.id, lessons));
        pauseGranted(lessons.pause, idOf(call.name), instant(now));
        const { breaker } = lessons;
        if (allows(breaker, instant(now))) breakerGranted(breaker, idOf(call.name));
      }
      answers.push(`grant ${call.name}.1`);
    }
    return answers;
  }

  /** Finds the next call and its member: the first in order that its scopes do not hold, at a member that no call before it waits for. */
  #next(now: number): { readonly call: NaiveCall; readonly place: Place } | null {
    if (now < this.grantsFrom) return null;
    const inOrder = this.waiters.toSorted(
      (a, b) => LANES.indexOf(a.lane) - LANES.indexOf(b.lane) || a.enqueuedAt - b.enqueuedAt,
    );
    const waitedFor: Place[] = [];
    let held: Narrower[] = [];
    for (const call of inOrder) {
      const isBehind = (place: Place): boolean =>
        this.#scopesOf(place, call).some((scope) => held.includes(scope));
      // Who is behind one that waits for the same scope must not take what that waits for.
      if (held.length > 0 && this.places.every(isBehind)) continue;
      const holding = this.places.map((place) => this.#heldBy(place, call, now));
      if (holding.every((scope) => scope !== undefined)) {
        if (!this.#rules['a call that its scope holds blocks no other call']) return null;
        held = [...held, ...holding.flatMap((scope) => scope ?? [])];
        continue;
      }
      const left = this.places.filter(
        (place, index) => holding[index] === undefined && !waitedFor.includes(place),
      );
      const fitting = left.filter(({ slotsMax }) => slotsMax >= call.slots);
      const rooms = fitting.map((place) => this.#roomAt(place, place.own, call.slots, now));
      const free = fitting.filter((_, index) => rooms[index] === now);
      if (free.length > 0) return { call, place: this.#best(free) };
      const soonest = Math.min(...rooms);
      const first = fitting[rooms.indexOf(soonest)];
      waitedFor.push(...(soonest === Infinity || first === undefined ? fitting : [first]));
    }
    return null;
  }

  /** Of members with room the one with the smallest part of its slots in use, then the one without a grant for longest. */
  #best(free: readonly Place[]): Place {
    const loadOf = (place: Place): number =>
      this.#inUse(place.id, place.own) / this.#slotsMax(place, place.own);
    const turnOf = ({ id }: Place): number => this.#granted.lastIndexOf(id);
    const sorted = free.toSorted((a, b) => loadOf(a) - loadOf(b) || turnOf(a) - turnOf(b));
    const [best] = this.#isSplit ? sorted : free;
    if (best === undefined) throw new Error('no member has room');
    return best;
  }
}

interface Block {
  readonly reason: 'paused' | 'breaker_open';
  readonly until: number;
}

/** A scope with fewer names comes first, and of as many names the one that names the model, and then the tier. */
function keyOrder({ scope: { model, tier, credential } }: Narrower): number {
  return (model === null ? 0 : 4) + (tier === null ? 0 : 2) + (credential === null ? 0 : 1);
}

function idOf(name: string): LeaseId {
  return leaseIdOf(ticketId(name), 1);
}

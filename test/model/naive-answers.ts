import {
  allows,
  noteEnded as breakerEnded,
  noteFailed,
  noteGranted as breakerGranted,
  noteServed as breakerServed,
} from '../../src/core/parts/breaker.ts';
import {
  failProbe,
  isProbing,
  isPrompt,
  noteConcurrencyRefusal,
  noteOverload,
  noteServed as ceilingServed,
  slotsMaxNow,
  slotsProven,
} from '../../src/core/parts/ceiling.ts';
import { noteAccepted, noteOpenRefusal } from '../../src/core/parts/evidence.ts';
import {
  explainsRefusal,
  noteAccepted as noteTaken,
  noteFewer,
  takeCooldownMs,
} from '../../src/core/parts/lag.ts';
import {
  noteEnded as pauseEnded,
  noteGranted as pauseGranted,
  noteRefused as pauseRefused,
  noteServed as pauseServed,
  pauseFor,
} from '../../src/core/parts/pause.ts';
import { instant, ticketId } from '../../src/core/words/ids.ts';
import type { RefusalKind, UpstreamSignal } from '../../src/core/words/signal.ts';
import type { NaiveLease } from './naive-leases.ts';
import { NaiveReports } from './naive-reports.ts';
import type { NaiveRoom, NaiveSite } from './naive-room.ts';
import type { NaiveLessons } from './naive-scopes.ts';

/** The slots at the upstream when a lease was granted, as counted by some lessons. */
export interface NaiveAtGrant {
  readonly slotsAtGrant: number;
  readonly slotsCounted: number;
  readonly gapMs: number;
}

/** A released slot. */
interface NaiveAnswersEnded {
  readonly at: number;
  readonly lessons: readonly NaiveLessons[];
}

const NOT_KNOWN: NaiveAtGrant = { slotsAtGrant: 0, slotsCounted: 0, gapMs: Infinity };

/** Answers of the upstream, and what a naive group learns from them. */
export class NaiveAnswers {
  readonly reports: NaiveReports;
  readonly #site: NaiveSite;
  readonly #room: NaiveRoom;
  #ended: NaiveAnswersEnded[] = [];
  /** Refusals for concurrency since a call was served that was granted later. */
  #refusals: { readonly call: string; readonly id: string }[] = [];
  #refusedAt = 0;

  constructor(site: NaiveSite, room: NaiveRoom) {
    this.#site = site;
    this.#room = room;
    this.reports = new NaiveReports(room);
  }

  recover(): void {
    this.#ended = [];
    this.#refusals = [];
    this.#refusedAt = 0;
    this.reports.counts = { unconfirmed: 0, ignored: 0, confirmed: 0, refuted: 0 };
  }

  forgetRefusals(): void {
    this.#refusals = [];
  }

  /** A member changes its id. The calls of its scopes at the upstream are no longer known. */
  rename(id: string): void {
    const { narrower } = this.#room.scopes.member(id);
    const isOfMember = (lessons: NaiveLessons): boolean =>
      !narrower.some((each) => each === lessons);
    this.#ended = this.#ended.map(({ at, lessons }) => {
      return { at, lessons: lessons.filter(isOfMember) };
    });
    for (const lease of this.#site.leases()) {
      for (const each of narrower) lease.atGrantIn.delete(each);
    }
  }

  /** How often the same serving member has refused a call. */
  refusalsOf(call: string): number {
    const counts = this.#site.places
      .serving()
      .map((place) => this.#refusals.filter(({ id }) => id === place.id))
      .map((there) => there.filter((each) => each.call === call).length);
    return Math.max(...counts);
  }

  refusalsMax(): number {
    const counts = Object.values(Object.groupBy(this.#refusals, (each) => JSON.stringify(each)));
    return Math.max(0, ...counts.map((each) => each?.length ?? 0));
  }

  /** A call may start now. */
  callable(lease: NaiveLease, now: number): void {
    lease.callableAt = now;
    for (const lessons of this.#room.lessonsOf(lease)) {
      const slotsAtGrant = this.#atUpstream(lease, lessons);
      const { ceiling, lag } = lessons;
      const proven = slotsProven(ceiling, this.#settings(lease), instant(now));
      const ended = this.#endedOf(lessons);
      const before = ended.at(slotsAtGrant - proven - 1) ?? -Infinity;
      const isFree = lease.slots === 0 || slotsAtGrant > proven;
      const late = ended.filter((at) => at > now - lag.sure.ms);
      this.#setAtGrant(lease, lessons, {
        slotsAtGrant,
        slotsCounted: slotsAtGrant + late.length,
        gapMs: isFree ? Infinity : now - before,
      });
    }
  }

  /** A call that starts probes pauses and open breakers. */
  granted(lease: NaiveLease, now: number): void {
    for (const { pause, breaker } of this.#room.lessonsOf(lease)) {
      pauseGranted(pause, lease.id, instant(now));
      if (allows(breaker, instant(now))) breakerGranted(breaker, lease.id);
    }
  }

  /** A call has ended. It may still count at the upstream for a while. */
  endedThere(lease: NaiveLease, now: number): void {
    if (lease.isRefused || lease.waitsElsewhere) return;
    const lessons = this.#room.lessonsOf(lease);
    for (let slot = 0; slot < lease.slots; slot += 1) this.#ended.push({ at: now, lessons });
  }

  /** A lease has left its member. */
  left(lease: NaiveLease, lessons: readonly NaiveLessons[], isLost: boolean, now: number): void {
    for (const { pause, breaker } of lessons) {
      breakerEnded(breaker, lease.id, isLost, instant(now));
      pauseEnded(pause, lease.id);
    }
  }

  /** A call ended well, and its answer was not reported. */
  endedWell(lease: NaiveLease, at: number): void {
    if (lease.hasAnswer) return;
    const now = instant(at);
    const { slotsAtGrant } = lease.atGrant;
    const grantedAt = instant(lease.callableAt);
    const served = { grantedAt, slotsAtGrant };
    const member = this.#room.memberOf(lease);
    if (!lease.isById) this.reports.refute(member, served, undefined, now);
    this.#room.scopes.contradict(lease.holder);
    for (const lessons of this.#room.lessonsOf(lease)) {
      const atGrant = this.#atGrant(lease, lessons);
      breakerServed(lessons.breaker, { leaseId: lease.id, grantedAt }, now);
      noteAccepted(
        lessons.ceiling.evidence,
        { grantedAt, slotsAtGrant: atGrant.slotsAtGrant },
        now,
      );
      this.#taken(lease, lessons);
    }
    if (grantedAt > this.#refusedAt) this.#refusals = [];
  }

  /** The upstream answers a call. */
  answered(lease: NaiveLease, signal: UpstreamSignal, isRepeat: boolean, now: number): void {
    const { scopes } = this.#room;
    if (signal.names !== undefined && lease.holder.isUnread === true) {
      const { isUnread: _, tier: _tier, ...holder } = lease.holder;
      const { model, tier } = signal.names;
      lease.holder = { ...holder, model, ...(tier !== null && { tier }) };
      lease.atGrantIn.clear();
      scopes.noteSeen(lease.holder, now);
    }
    lease.hasAnswer = true;
    const { kind, reportedBy } = signal;
    if (kind === 'served') return this.#served(lease, signal, now);
    if (kind === 'never_fits') return;
    for (const { pause } of this.#room.lessonsOf(lease)) {
      pauseRefused(pause, lease.id, instant(now));
    }
    // These say nothing about other calls before another member has served this one.
    if (['quota', 'unauthorized', 'egress'].includes(kind)) return;
    const retryAfterMs = signal.retryAfterMs === 0 ? null : signal.retryAfterMs;
    const { id, member } = this.#at(lease);
    const lessons = scopes.lessonsFor(id, lease.holder, signal, now);
    if (lessons === null) return;
    const apply = (afterMs: number | null): void =>
      this.#learn(lease, lessons, { ...signal, kind, retryAfterMs: afterMs }, isRepeat, now);
    const { slotsMax } = signal;
    if (reportedBy !== undefined) {
      const report = { kind, by: reportedBy, retryAfterMs, slotsMax };
      if (lessons === member.own) return this.reports.apply(id, report, apply, now);
      return this.reports.applyInScope(member, lessons, report, apply, now);
    }
    if (lessons !== member.own) return apply(retryAfterMs);
    this.reports.applySeen(member, kind, () => apply(retryAfterMs), now);
  }

  #served(lease: NaiveLease, signal: UpstreamSignal, at: number): void {
    const now = instant(at);
    const { retryAfterMs, reportedBy, isMistake = false } = signal;
    const { id, member } = this.#at(lease);
    const grantedAt = instant(lease.callableAt);
    const { slotsAtGrant } = lease.atGrant;
    this.reports.refute(member, { grantedAt, slotsAtGrant }, reportedBy, now);
    this.#room.scopes.contradict(lease.holder);
    for (const lessons of this.#room.lessonsOf(lease)) {
      const { ceiling, breaker, pause } = lessons;
      const slotsInUse = this.#atUpstream(lease, lessons);
      const there = { ...this.#atGrant(lease, lessons), grantedAt, slotsInUse };
      ceilingServed(ceiling, this.#settings(lease), there, now);
      breakerServed(breaker, { leaseId: lease.id, grantedAt }, now);
      this.#taken(lease, lessons);
      if (!this.#room.scopes.isSurelyIn(lease.holder, lessons)) continue;
      pauseServed(pause, { leaseId: lease.id, grantedAt, isMistake }, now);
    }
    if (grantedAt > this.#refusedAt) this.#refusals = [];
    if (retryAfterMs === null || retryAfterMs === 0) return;
    const about = { kind: 'served', scope: 'credential' } as const;
    const lessons = this.#room.scopes.lessonsFor(id, lease.holder, about, now) ?? member.own;
    const pause = (afterMs: number | null): void =>
      pauseFor(lessons.pause, { grantedAt, retryAfterMs: afterMs, isLongWindow: false }, now);
    if (reportedBy !== undefined) {
      const report = { kind: 'requests', by: reportedBy, retryAfterMs, slotsMax: null } as const;
      if (lessons === member.own) return this.reports.apply(id, report, pause, now);
      return this.reports.applyInScope(member, lessons, report, pause, now);
    }
    if (lessons !== member.own) return pause(retryAfterMs);
    this.reports.applySeen(member, 'requests', () => pause(retryAfterMs), now);
  }

  #learn(
    lease: NaiveLease,
    lessons: NaiveLessons,
    signal: UpstreamSignal & { readonly kind: RefusalKind },
    isRepeat: boolean,
    at: number,
  ): void {
    const { kind, slotsMax, retryAfterMs, reportedBy } = signal;
    const { pause, breaker, ceiling } = lessons;
    const [grantedAt, now] = [instant(lease.callableAt), instant(at)];
    const { id, member } = this.#at(lease);
    const isReported = reportedBy !== undefined;
    const orphaned = lessons === member.own ? this.#site.places.orphaned(id) : 0;
    const othersInUse = this.#atUpstream(lease, lessons) + orphaned;
    const refused = { ticketId: ticketId(lease.ticketId), grantedAt, othersInUse };
    const settings = this.#settings(lease);
    const words = isReported ? null : (signal.words ?? null);
    const stop = (isLongWindow: boolean): void => {
      if (isRepeat) return;
      const isOverload = kind === 'overload' && signal.isRate !== true;
      const cause = { grantedAt, retryAfterMs, isLongWindow, isOverload, words };
      pauseFor(pause, { ...cause, isProbed: member.hasServed && !isReported }, now);
    };
    if (kind === 'concurrency') {
      this.#refusals.push({ call: lease.ticketId, id });
      this.#refusedAt = now;
      lease.isLagging = this.#isLag(lease, lessons, slotsMax, othersInUse, now);
      if (lease.isLagging) return;
      const before = slotsProven(ceiling, settings, now);
      const late = this.#endedOf(lessons).filter((each) => each > now - lessons.lag.ms);
      const beside = { ...refused, othersInUse: othersInUse + late.length };
      noteConcurrencyRefusal(ceiling, settings, { ...beside, namedSlotsMax: slotsMax }, now);
      if (slotsMaxNow(ceiling, settings) < before) noteFewer(lessons.lag, refused.ticketId);
    }
    if (kind === 'overload' || kind === 'ramp') noteOverload(ceiling, settings, refused, now);
    if (kind === 'overload' || kind === 'error') {
      const failed = { leaseId: lease.id, grantedAt, retryAfterMs, isReported };
      noteFailed(breaker, { ...failed, ...(signal.isRate === true && { limit: { words } }) }, now);
    }
    if (kind === 'overload' && retryAfterMs !== null) stop(false);
    if (['ramp', 'requests', 'tokens', 'unknown'].includes(kind)) stop(false);
    if (kind === 'long_window' && retryAfterMs !== null) stop(true);
  }

  /** Whether the upstream may refuse a call because it still counts others that have ended. */
  #isLag(
    lease: NaiveLease,
    lessons: NaiveLessons,
    named: number | null,
    othersInUse: number,
    at: number,
  ): boolean {
    const [grantedAt, now] = [instant(lease.callableAt), instant(at)];
    const { ceiling, lag } = lessons;
    const settings = this.#settings(lease);
    const id = ticketId(lease.ticketId);
    const { slotsAtGrant, gapMs } = this.#atGrant(lease, lessons);
    if (this.#site.settings.releaseCooldownMs !== 'auto' || !isPrompt(grantedAt, now)) return false;
    if (named !== null && named < slotsAtGrant) return false;
    if (slotsAtGrant > slotsProven(ceiling, settings, now)) return false;
    if (isProbing(ceiling, now)) {
      failProbe(ceiling, settings, id, now);
      return true;
    }
    const call = { ticketId: id, grantedAt, slotsAtGrant, gapMs };
    if (!explainsRefusal(lag, call, now)) return false;
    noteOpenRefusal(ceiling.evidence, { ticketId: id, othersInUse }, now);
    return true;
  }

  #taken(lease: NaiveLease, lessons: NaiveLessons): void {
    const { slotsAtGrant, slotsCounted, gapMs } = this.#atGrant(lease, lessons);
    const slots = slotsMaxNow(lessons.ceiling, this.#settings(lease));
    const full = { isLast: slotsAtGrant >= slots, isLastCounted: slotsCounted >= slots };
    const grantedAt = instant(lease.callableAt);
    noteTaken(lessons.lag, { grantedAt, slotsAtGrant, gapMs }, full);
  }

  /** The longest learned cool-down of a lease's slots. */
  cooldownMs(lease: NaiveLease): number {
    return Math.max(...this.#room.lessonsOf(lease).map(({ lag }) => takeCooldownMs(lag)));
  }

  /** Whether the answer to a call is about all calls of its member. */
  speaksForAll({ holder }: NaiveLease, now: number): boolean {
    const { credential = null } = holder;
    if (credential === null) return true;
    return this.#room.scopes.areAllIn({ model: null, tier: null, credential }, now);
  }

  #at(lease: NaiveLease) {
    const id = this.#site.places.countsAt(lease);
    return { id, member: this.#room.scopes.member(id) };
  }

  #settings(lease: NaiveLease) {
    return this.#room.settings(this.#site.places.countsAt(lease));
  }

  #atUpstream(lease: NaiveLease, lessons: NaiveLessons): number {
    return this.#room.atUpstream(this.#site.places.countsAt(lease), lessons);
  }

  #endedOf(lessons: NaiveLessons): readonly number[] {
    return this.#ended.filter((each) => each.lessons.includes(lessons)).map(({ at }) => at);
  }

  #atGrant(lease: NaiveLease, lessons: NaiveLessons): NaiveAtGrant {
    if (!('scope' in lessons)) return lease.atGrant;
    return lease.atGrantIn.get(lessons) ?? NOT_KNOWN;
  }

  #setAtGrant(lease: NaiveLease, lessons: NaiveLessons, atGrant: NaiveAtGrant): void {
    if ('scope' in lessons) lease.atGrantIn.set(lessons, atGrant);
    else lease.atGrant = atGrant;
  }
}

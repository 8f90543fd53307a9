import type { WaitCause } from '../../src/core/parts/decision-log.ts';
import { allows, nextChangeAt as breakerChangesAt } from '../../src/core/parts/breaker.ts';
import { slotsMaxNow, type CeilingSettings } from '../../src/core/parts/ceiling.ts';
import { letsOthersTry } from '../../src/core/parts/evidence.ts';
import {
  mayProbe,
  nextChangeAt as pauseChangesAt,
  rampSlotsMax,
  stopsUntil,
} from '../../src/core/parts/pause.ts';
import { instant } from '../../src/core/words/ids.ts';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import type { Ticket } from '../../src/core/words/ticket.ts';
import type { NaiveLease } from './naive-leases.ts';
import type { NaivePlaces, NaivePosition } from './naive-places.ts';
import {
  isIn,
  type NaiveScopes,
  type NaiveLessons,
  type NaiveMember,
  type NaiveNarrower,
  type NaiveScope,
} from './naive-scopes.ts';

/** The group to whose calls the lessons apply. */
export interface NaiveSite {
  readonly settings: GroupSettings;
  readonly places: NaivePlaces;
  leases(): readonly NaiveLease[];
}

/** A stop by the upstream, its end, and the stopped calls (null: all). */
export interface NaiveBlock {
  readonly reason: 'paused' | 'breaker_open' | 'members_out';
  readonly until: number;
  /** The refusal that opened the breaker. Absent if failures did. */
  readonly limit?: { readonly words: string | null };
  readonly scope: NaiveScope | null;
}

/** The contents of a rejection for a stop, or for slots. */
export interface NaiveRejection {
  /** The cause of `busy`, if it is not that all slots are in use. */
  readonly cause?: WaitCause;
  readonly reason: 'paused' | 'upstream_limited' | 'breaker_open' | 'members_out' | 'busy';
  readonly until?: number | null;
  readonly probeAt?: number | null;
  readonly words?: string | null;
  readonly slotsMax?: number;
  readonly scope: NaiveScope | null;
}

/** Lessons, and the calls to which they apply (null: all calls of a member). */
type NaiveRoomAbout = readonly [lessons: NaiveLessons, scope: NaiveScope | null];

/** Room for calls by the lessons. It is summed up from the leases and the lessons on each request. */
export class NaiveRoom {
  readonly scopes: NaiveScopes;
  readonly #site: NaiveSite;
  /** Ends of all stops before the current event. */
  #stops = new Map<NaiveLessons, number>();

  constructor(site: NaiveSite, scopes: NaiveScopes) {
    this.#site = site;
    this.scopes = scopes;
  }

  /** The lessons of the serving members. */
  serving(): readonly NaiveMember[] {
    return this.#site.places.serving().map(({ id }) => this.scopes.member(id));
  }

  memberOf(lease: Pick<NaiveLease, 'named'>): NaiveMember {
    return this.scopes.member(this.#site.places.countsAt(lease));
  }

  /** All lessons about a lease: those of its member, and of its scopes there. */
  lessonsOf(lease: NaiveLease): readonly NaiveLessons[] {
    const member = this.memberOf(lease);
    return [member.own, ...this.scopes.scopesOf(member, lease.holder)];
  }

  settings(id: string): CeilingSettings {
    const place = this.#site.places.serving().find((each) => each.id === id);
    const { isAdaptive = false, slotsMax = 0 } = place ?? {};
    return { slotsMax, isHard: true, isAdaptive };
  }

  /** The leases at a member to which some lessons apply. */
  #counted(id: string, lessons: NaiveLessons): readonly NaiveLease[] {
    const here = this.#site.leases().filter((lease) => this.#site.places.countsAt(lease) === id);
    const scope = this.scopes.member(id).narrower.find((each) => each === lessons)?.scope;
    return scope === undefined ? here : here.filter(({ holder }) => isIn(holder, scope));
  }

  inUse(id: string, lessons: NaiveLessons): number {
    const isOwn = lessons === this.scopes.member(id).own;
    const orphaned = isOwn ? this.#site.places.orphaned(id) : 0;
    return this.#counted(id, lessons).reduce((sum, { slots }) => sum + slots, orphaned);
  }

  /** Slots of calls at the upstream. */
  atUpstream(id: string, lessons: NaiveLessons): number {
    const there = this.#counted(id, lessons).filter(
      ({ phase, waitsElsewhere, isRefused }) =>
        phase !== 'cooling' && !waitsElsewhere && !isRefused,
    );
    return there.reduce((sum, { slots }) => sum + slots, 0);
  }

  /** Slots that calls of a member may use, by its configured and learned limits. */
  slotsLearnedAt(id: string): number {
    return slotsMaxNow(this.scopes.member(id).own.ceiling, this.settings(id));
  }

  /** The same of the whole group. */
  slotsLearned(): number {
    const { members, slotsMax } = this.#site.settings;
    const serving = this.#site.places.serving();
    const all = serving.reduce((sum, { id }) => sum + this.slotsLearnedAt(id), 0);
    return members.length === 0 ? all : Math.min(slotsMax, all);
  }

  /** Slots that calls of a member may use now, while they grow after a pause. */
  slotsNowAt(id: string, now: number): number {
    const { pause } = this.scopes.member(id).own;
    return rampSlotsMax(pause, this.slotsLearnedAt(id), instant(now));
  }

  /** The same of the whole group. */
  slotsNow(now: number): number {
    const { members, slotsMax } = this.#site.settings;
    const serving = this.#site.places.serving();
    const all = serving.reduce((sum, { id }) => sum + this.slotsNowAt(id, now), 0);
    return members.length === 0 ? all : Math.min(slotsMax, all);
  }

  /** Slots that calls of a scope may use, never more than those of its member. */
  #slotsIn(id: string, { ceiling }: NaiveLessons): number {
    const most = this.slotsLearnedAt(id);
    return ceiling.slots === null ? most : Math.min(most, slotsMaxNow(ceiling, this.settings(id)));
  }

  #roomBy(
    { pause, breaker }: NaiveLessons,
    inUse: number,
    most: number,
    slots: number,
    at: number,
  ): number {
    const now = instant(at);
    let roomAt = at;
    if (inUse + slots > rampSlotsMax(pause, most, now)) {
      if (inUse > 0 && inUse + slots > most) return Infinity;
      roomAt = Math.max(roomAt, inUse > 0 ? pauseChangesAt(pause, most, now) : stopsUntil(pause));
    }
    return allows(breaker, now) ? roomAt : Math.max(roomAt, breakerChangesAt(breaker, now));
  }

  /** Returns when a member has room for so many slots, without its scopes and the limit over all members. */
  roomAt(id: string, slots: number, now: number): number {
    const { own } = this.scopes.member(id);
    return this.#roomBy(own, this.usedAt(id), this.slotsLearnedAt(id), slots, now);
  }

  /** Slots that calls may have at a member. Slots granted before the group had members may be at any member. */
  usedAt(id: string): number {
    const unplaced = id === '' ? 0 : this.#site.places.orphaned('');
    return this.inUse(id, this.scopes.member(id).own) + unplaced;
  }

  /** Returns why a scope has no room for a call. */
  causeOf(scope: NaiveNarrower, now: number): 'upstream_pause' | 'breaker' | 'slots' {
    const block = this.blockOf(scope, now);
    if (block?.reason === 'paused') return 'upstream_pause';
    return block !== null || !allows(scope.breaker, instant(now)) ? 'breaker' : 'slots';
  }

  /** Whether the breakers of all these members stop all calls. */
  areBroken(places: readonly NaivePosition[], now: number): boolean {
    return places.every(({ id }) => !allows(this.scopes.member(id).own.breaker, instant(now)));
  }

  /** Finds a scope at a member without room for a call. */
  heldBy(id: string, { holder, slots }: Ticket, now: number): NaiveNarrower | undefined {
    return this.scopes.scopesOf(this.scopes.member(id), holder).find((scope) => {
      const most = this.#slotsIn(id, scope);
      return this.#roomBy(scope, this.inUse(id, scope), most, slots, now) > now;
    });
  }

  /** Lists the scopes that hold a call, one for each member that it may go to. Empty if it is not held. */
  scopesHolding(ticket: Ticket, now: number): readonly NaiveNarrower[] {
    const holding = this.#site.places
      .possible(ticket)
      .map(({ id }) => this.heldBy(id, ticket, now));
    return holding.includes(undefined) ? [] : holding.flatMap((scope) => scope ?? []);
  }

  /**
   * Whether a call would take the slot that an earlier call waits for, because it is in such a scope at every member.
   */
  isBehind(ticket: Ticket, holding: readonly NaiveNarrower[]): boolean {
    const isThere = (id: string): boolean =>
      this.scopes
        .scopesOf(this.scopes.member(id), ticket.holder)
        .some((scope) => holding.includes(scope));
    return holding.length > 0 && this.#site.places.possible(ticket).every(({ id }) => isThere(id));
  }

  /** Whether full scopes hold a call at every member. */
  isHeld(ticket: Ticket, now: number): boolean {
    const full = this.#site.places.serving().flatMap(({ id }) =>
      this.scopes.member(id).narrower.filter((scope) => {
        return this.#roomBy(scope, this.inUse(id, scope), this.#slotsIn(id, scope), 1, now) > now;
      }),
    );
    return this.isBehind(ticket, full);
  }

  /** Whether a call yields to others at a member that has just refused it. */
  isHeldBackAt(id: string, { id: ticketId, holder }: Ticket): boolean {
    const member = this.scopes.member(id);
    return [member.own, ...this.scopes.scopesOf(member, holder)].some((lessons) =>
      letsOthersTry(lessons.ceiling.evidence, ticketId, this.atUpstream(id, lessons)),
    );
  }

  isHeldBack(ticket: Ticket): boolean {
    return this.#site.places.possible(ticket).every(({ id }) => this.isHeldBackAt(id, ticket));
  }

  blockOf({ pause, breaker }: NaiveLessons, at: number): Omit<NaiveBlock, 'scope'> | null {
    const now = instant(at);
    const until = breakerChangesAt(breaker, now);
    if (until !== Infinity && until > pause.until) {
      const { limit } = breaker;
      return { reason: 'breaker_open', until, ...(limit !== undefined && { limit }) };
    }
    const isClosed = now < pause.until && !mayProbe(pause, now);
    return isClosed ? { reason: 'paused', until: pause.until } : null;
  }

  /**
   * Lessons that hold a call at a member, the member's own first, with their calls. Without a call, only the member's
   * own.
   */
  #aboutAt(id: string, holder: Ticket['holder'] | null): readonly NaiveRoomAbout[] {
    const member = this.scopes.member(id);
    const own: NaiveRoomAbout = [member.own, this.aboutOwn(id)];
    if (holder === null) return [own];
    return [
      own,
      ...this.scopes.scopesOf(member, holder).map((one): NaiveRoomAbout => [one, one.scope]),
    ];
  }

  /** Why these members stop a call (or all calls), and when the first stop ends. null if not all stop it. */
  blockAt(ids: readonly string[], holder: Ticket['holder'] | null, now: number): NaiveBlock | null {
    if (ids.length === 0) return { reason: 'members_out', until: Infinity, scope: null };
    const ofEach = ids.map((id) => {
      const blocks = this.#aboutAt(id, holder).flatMap(([lessons, scope]) => {
        const block = this.blockOf(lessons, now);
        return block === null ? [] : { ...block, scope };
      });
      return blocks.toSorted((a, b) => b.until - a.until)[0] ?? null;
    });
    if (ofEach.includes(null)) return null;
    return ofEach.flatMap((block) => block ?? []).toSorted((a, b) => a.until - b.until)[0] ?? null;
  }

  blockFor(ticket: Ticket, now: number): NaiveBlock | null {
    const ids = this.#site.places.possible(ticket).map(({ id }) => id);
    return this.blockAt(ids, ticket.holder, now);
  }

  /**
   * Rejects a call for a stop. If limits hold it at some members, the rejection names the pause that ends first, and of
   * those at one member the longest.
   */
  rejectionFor(ticket: Ticket, block: NaiveBlock, now: number): NaiveRejection {
    const { reason, until, scope } = block;
    const limits = this.#site.places.possible(ticket).flatMap(({ id }) => {
      const limited = this.#aboutAt(id, ticket.holder).filter(
        ([{ pause }]) => now < pause.until && !pause.isOverload,
      );
      return limited.toSorted(([a], [b]) => b.pause.until - a.pause.until).slice(0, 1);
    });
    const [limit] = limits.toSorted(([a], [b]) => a.pause.until - b.pause.until);
    if (reason !== 'breaker_open' && limit !== undefined) {
      const [{ pause }, about] = limit;
      const isProbed = pause.waitMs > 0 && pause.probe === null;
      const probeAt = isProbed ? pause.probeAt : null;
      const { words } = pause;
      return { reason: 'upstream_limited', until: pause.until, probeAt, words, scope: about };
    }
    if (block.limit !== undefined) {
      const { words } = block.limit;
      return { reason: 'upstream_limited', until, probeAt: null, words, scope };
    }
    return { reason, scope, ...(reason === 'paused' && { until }) };
  }

  /** Rejects a call that does not allow queueing, with the slots available to it. */
  rejectionForSlots(ticket: Ticket, now: number): NaiveRejection {
    const ofAll = this.slotsNow(now);
    const numbers = this.scopesHolding(ticket, now).flatMap((one) => {
      const id = this.#site.places
        .possible(ticket)
        .find(({ id: at }) => this.scopes.member(at).narrower.includes(one))?.id;
      if (id === undefined || one.ceiling.slots === null) return [];
      return { slotsMax: slotsMaxNow(one.ceiling, this.settings(id)), scope: one.scope };
    });
    const [fewest] = numbers.toSorted((a, b) => a.slotsMax - b.slotsMax);
    if (fewest !== undefined && fewest.slotsMax < ofAll) return { reason: 'busy', ...fewest };
    // The limit of a group that names its members is its own, not the one that its only member learned.
    const isNamed = this.#site.settings.members.length > 0;
    const scope = isNamed ? null : this.learnedOf(this.#site.places.serving());
    return { reason: 'busy', slotsMax: ofAll, scope };
  }

  /** Calls to which the learned slots of a single-member group apply. null if all, or nothing was learned. */
  learnedOf([sole, other]: readonly NaivePosition[]): NaiveScope | null {
    if (sole === undefined || other !== undefined) return null;
    const { ceiling } = this.scopes.member(sole.id).own;
    return ceiling.slots === null ? null : this.aboutOwn(sole.id);
  }

  /** Calls to which the lessons of a member apply. null if all. */
  aboutOwn(id: string): NaiveScope | null {
    const { about } = this.scopes.member(id);
    const isOfAll = about.model === null && about.tier === null && about.credential === null;
    return isOfAll ? null : about;
  }

  #stopsAt(now: number): Map<NaiveLessons, number> {
    const all = this.serving().flatMap((member) => this.scopes.allOf(member));
    return new Map(all.map((lessons) => [lessons, this.blockOf(lessons, now)?.until ?? 0]));
  }

  beginEvent(now: number): void {
    this.#stops = this.#stopsAt(now);
  }

  /** Whether other members serve than before the event, or calls are stopped for longer. */
  isStoppedForLonger(now: number): boolean {
    const stops = this.#stopsAt(now);
    const owns = new Set(this.serving().map(({ own }) => own));
    const isLonger = [...stops].some(([lessons, until]) => {
      const before = this.#stops.get(lessons);
      return until > (before ?? 0) || (before === undefined && owns.has(lessons));
    });
    const isGone = [...this.#stops.keys()].some((each) => !('scope' in each) && !stops.has(each));
    return isLonger || isGone;
  }

  /** All later instants at which time alone may release calls. */
  changes(now: number): readonly number[] {
    const all = this.serving().flatMap((member) => this.scopes.allOf(member));
    const dues = all.flatMap(({ pause, breaker, ceiling: { evidence } }) => {
      const ramp = [pause.until, pause.until + 2_000, pause.until + 4_000];
      const { refusal } = evidence;
      const heldBack = refusal?.isHeldBack === true ? [refusal.at + 4_000] : [];
      return [...ramp, ...heldBack, pause.probeAt, breaker.openUntil];
    });
    const reports = [...this.scopes.members.values()].flatMap((member) => {
      return member.reports.unconfirmed?.until ?? [];
    });
    return [...dues, ...reports].filter((at) => at > now);
  }
}

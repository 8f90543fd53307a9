import type { MemberSettings, GroupSettings } from '../../../src/core/words/settings.ts';

/** A call as far as it matters where it goes. */
export interface NaiveCall {
  readonly name: string;
  readonly agent: string | null;
  readonly caller: string;
  readonly slots: number;
  readonly excluded: readonly string[];
}

interface NaiveMembersNaiveWaiter extends NaiveCall {
  /** Until when it waits for its own member, once it does. */
  heldUntil: number | null;
}

interface NaiveMembersNaiveLease extends NaiveCall {
  /** The member that its holder was told; empty: the group named none. */
  readonly named: string;
  readonly since: number;
}

/** A member that a refusal took out: from when a call may probe it, and the one that does. */
interface NaiveOutage {
  readonly probeAt: number;
  readonly waitMs: number;
  probe: string | null;
}

/** A refusal by a member of a call that another one has served since. */
export interface NaiveBlame {
  readonly member: string;
  readonly agoMs: number;
}

/** How long a probe is waited for: at first, and at most. */
const OUT_MIN_MS = 60_000;
const OUT_MAX_MS = 900_000;

/** The upstream of all calls. */
const UPSTREAM = 'openai';

/**
 * Where calls go, as plainly as decision 30 says it: those who wait, in the order of their arrival, and what runs. Of
 * one tenant and one lane, so the order is no more than that. Nothing is remembered that can be worked out again.
 */
export class NaiveMembers {
  settings: GroupSettings;
  waiters: NaiveMembersNaiveWaiter[] = [];
  leases: NaiveMembersNaiveLease[] = [];
  readonly #out = new Map<string, NaiveOutage>();
  /** When members came back last. */
  readonly #backAt = new Map<string, number>();
  /** All members that there ever were. */
  readonly #known = new Set<string>();
  /** The members of all grants, in their order. */
  readonly #granted: string[] = [];
  readonly #belongs = new Map<string, { readonly member: string; readonly until: number }>();
  readonly #holds: number[] = [];
  /** Those who wait for their own member now, while another has room. */
  #held: NaiveMembersNaiveWaiter[] = [];

  constructor(settings: GroupSettings) {
    this.settings = settings;
    for (const { id } of settings.members) this.#known.add(id);
  }

  /** Lists where each call counts: a group without members has but one; the key of the upstream is that of its successor. */
  countsAt({ named }: NaiveMembersNaiveLease): string {
    const { members } = this.settings;
    if (members.length === 0 || named !== '') return members.length === 0 ? '' : named;
    return members.find(({ succeeds }) => succeeds === UPSTREAM)?.id ?? '';
  }

  ask(call: NaiveCall, now: number): string[] {
    this.waiters.push({ ...call, heldUntil: null });
    return this.#settle(now);
  }

  end(name: string, now: number): string[] {
    const lease = this.leases.find((each) => each.name === name);
    if (lease !== undefined) this.#holds.push(now - lease.since);
    this.leases = this.leases.filter((each) => each !== lease);
    for (const out of this.#out.values()) {
      if (out.probe === name) out.probe = null;
    }
    return this.#settle(now);
  }

  reconfigure(settings: GroupSettings, now: number): string[] {
    this.settings = settings;
    for (const { id } of settings.members) this.#known.add(id);
    // A probe that counts elsewhere now tells nothing of this member.
    for (const [id, out] of this.#out) {
      const probe = this.leases.find(({ name }) => name === out.probe);
      if (probe !== undefined && this.countsAt(probe) !== id) out.probe = null;
    }
    return this.#settle(now);
  }

  /** The upstream refuses the key of a call: nothing follows, but that its member is out for longer where it was its probe. */
  refuse(name: string, now: number): string[] {
    const id = this.#memberOf(name);
    const out = this.#out.get(id);
    if (out?.probe === name) {
      const waitMs = Math.min(OUT_MAX_MS, 2 * out.waitMs);
      this.#out.set(id, { waitMs, probeAt: now + waitMs, probe: null });
    }
    return this.#settle(now);
  }

  /** A call is served: its member is in if it was its probe, and others are out that have refused it and were in since. */
  served(name: string, blamed: readonly NaiveBlame[], now: number): string[] {
    const here = this.#memberOf(name);
    if (this.#out.get(here)?.probe === name) this.#back(here, now);
    for (const { member, agoMs } of this.settings.members.length === 0 ? [] : blamed) {
      const isNews = now - agoMs >= (this.#backAt.get(member) ?? 0);
      if (member === here || !isNews || this.#out.has(member) || !this.#known.has(member)) continue;
      this.#out.set(member, { waitMs: OUT_MIN_MS, probeAt: now + OUT_MIN_MS, probe: null });
    }
    return this.#settle(now);
  }

  #memberOf(name: string): string {
    const lease = this.leases.find((each) => each.name === name);
    return lease === undefined ? '' : this.countsAt(lease);
  }

  #back(id: string, now: number): void {
    this.#out.delete(id);
    this.#backAt.set(id, now);
  }

  bringBack(id: string, now: number): string[] {
    this.#back(id, now);
    return this.#settle(now);
  }

  tick(now: number): string[] {
    return this.#settle(now);
  }

  /** When the next one goes elsewhere that waits for its own member, because time is up or its own is forgotten, or a member may be probed. */
  dueAt(now: number): number {
    const held = this.#held.map(({ heldUntil }) => heldUntil ?? Infinity);
    const probes = [...this.#out.values()].map(({ probeAt }) => probeAt);
    const forgotten = this.#held.map((call) => this.#belongs.get(this.#keyOf(call) ?? '')?.until);
    const dues = [...held, ...probes, ...forgotten.map((at) => at ?? Infinity)];
    return Math.min(...dues.filter((at) => at > now));
  }

  #settle(now: number): string[] {
    const reported: string[] = [];
    const reject = (isMeant: (waiter: NaiveMembersNaiveWaiter) => boolean, why: string): void => {
      for (const waiter of this.waiters.filter(isMeant)) {
        reported.push(`reject ${waiter.name} ${why}`);
      }
      this.waiters = this.waiters.filter((waiter) => !isMeant(waiter));
    };
    reject((waiter) => this.#isTooWide(waiter), 'never_fits');
    reject((waiter) => this.#isStopped(waiter), 'members_out');
    for (let next = this.#next(now); next !== null; next = this.#next(now)) {
      const { waiter, member } = next;
      this.waiters = this.waiters.filter((each) => each !== waiter);
      this.#grant(waiter, member, now);
      reported.push(`grant ${waiter.name} at ${member}`);
    }
    return reported.toSorted();
  }

  #grant(call: NaiveCall, named: string, now: number): void {
    this.leases.push({ ...call, named, since: now });
    const out = this.#out.get(named);
    if (out !== undefined) out.probe = call.name;
    this.#granted.push(named);
    const { members, affinity } = this.settings;
    const key = this.#keyOf(call);
    if (members.length === 0 || key === null) return;
    const known = this.#belongs.get(key);
    const tierOf = (id: string): number => members.find((each) => each.id === id)?.tier ?? Infinity;
    const isFirst = members.every(({ isEnabled, tier }) => !isEnabled || tier >= tierOf(named));
    const isKept = known?.member === named && now < known.until && !isFirst;
    if (!isKept) this.#belongs.set(key, { member: named, until: now + affinity.forMs });
  }

  /** Finds who goes next, and where. */
  #next(now: number): { readonly waiter: NaiveMembersNaiveWaiter; readonly member: string } | null {
    let barred: string[] = [];
    const waiting: string[] = [];
    this.#held = [];
    for (const waiter of this.waiters) {
      const wide = this.#possible(waiter).filter(
        ({ slotsMax }) => slotsMax === 0 || slotsMax >= waiter.slots,
      );
      const left = wide.filter(({ id }) => !barred.includes(id));
      const rooms = left.map((member) => this.#roomAt(member, waiter.slots, now));
      const free = left.filter((_, index) => rooms[index] === now);
      if (left.length === 0) continue;
      if (free.length === 0) {
        const soonest = Math.min(...rooms);
        const timely = left.slice(rooms.indexOf(soonest)).slice(0, 1);
        const wanted = soonest === Infinity ? left : timely;
        const all = this.#isFull(waiter.slots) ? this.#serving() : wanted;
        barred = [...barred, ...all.map(({ id }) => id)];
        continue;
      }
      const own = wide.find(({ id }) => id === this.#ownOf(waiter, now));
      if (own !== undefined && free.includes(own)) return { waiter, member: own.id };
      if (own !== undefined) {
        const { waitMs } = this.settings.affinity;
        const until = waiter.heldUntil ?? now + waitMs;
        const before = waiting.filter((id) => id === own.id).length;
        const bySlots = now + ((before + waiter.slots) * this.#meanHold()) / own.slotsMax;
        const probeAt = this.#probeAt(own.id, now);
        const isFull = this.#inUse(own.id) + waiter.slots > own.slotsMax;
        const roomAt = isFull || probeAt === now ? Math.max(probeAt, bySlots) : probeAt;
        const isHopeless = own.slotsMax === 0 || waitMs === 0 || roomAt > now + waitMs;
        if (!isHopeless && until > now) {
          waiter.heldUntil ??= until;
          waiting.push(own.id);
          this.#held.push(waiter);
          continue;
        }
      }
      return { waiter, member: this.#best(free) };
    }
    return null;
  }

  /** Picks of the first tier the one with the smallest part of its slots in use, then the one without a grant for longest. */
  #best(free: readonly MemberSettings[]): string {
    const tier = Math.min(...free.map((member) => member.tier));
    let best: MemberSettings | null = null;
    for (const member of free.filter((each) => each.tier === tier)) {
      const [load, least] = [member, best ?? member].map((each) => this.#loadOf(each));
      const isLess = (load ?? 0) < (least ?? 0);
      const isOlder = load === least && this.#turnOf(member) < this.#turnOf(best ?? member);
      if (best === null || isLess || isOlder) best = member;
    }
    return best?.id ?? '';
  }

  #loadOf({ id, slotsMax, weight }: MemberSettings): number {
    return this.#inUse(id) / (weight * (slotsMax === Infinity ? 100 : slotsMax));
  }

  #turnOf({ id }: MemberSettings): number {
    return this.#granted.lastIndexOf(id);
  }

  #serving(): readonly MemberSettings[] {
    const { members, slotsMax, rates, budgets } = this.settings;
    if (members.length > 0) return members;
    const { breaker, probesPauses } = this.settings;
    const limits = { isHard: true, isAdaptive: true, rates, budgets, isMetered: false };
    const none = { ...limits, breaker, probesPauses };
    const sole = {
      slotsMax,
      ...none,
      weight: 1,
      tier: 1,
      isEnabled: true,
      succeeds: null,
      place: null,
    };
    return [{ id: '' as MemberSettings['id'], ...sole }];
  }

  /** Those that a call may go to. */
  #possible({ excluded }: NaiveCall): readonly MemberSettings[] {
    if (this.settings.members.length === 0) return this.#serving();
    return this.settings.members.filter(({ id, isEnabled }) => isEnabled && !excluded.includes(id));
  }

  /** When a member has room if nothing but time changes. */
  #roomAt({ id, slotsMax, isEnabled }: MemberSettings, slots: number, now: number): number {
    if (!isEnabled || this.#isFull(slots)) return Infinity;
    return this.#inUse(id) + slots <= slotsMax ? this.#probeAt(id, now) : Infinity;
  }

  /** From when a call may go to a member as far as refusals go; Infinity: its probe has no answer yet. */
  #probeAt(id: string, now: number): number {
    const out = this.#out.get(id);
    if (out === undefined) return now;
    return out.probe === null ? Math.max(now, out.probeAt) : Infinity;
  }

  /** Whether the limit over all has no room. */
  #isFull(slots: number): boolean {
    const { members, slotsMax } = this.settings;
    const inUse = this.leases.reduce((sum, lease) => sum + lease.slots, 0);
    return members.length > 0 && inUse + slots > slotsMax;
  }

  #inUse(id: string): number {
    const here = this.leases.filter((lease) => this.countsAt(lease) === id);
    return here.reduce((sum, lease) => sum + lease.slots, 0);
  }

  #isTooWide(call: NaiveCall): boolean {
    const widest = Math.max(...this.#possible(call).map(({ slotsMax }) => slotsMax));
    return [widest, this.settings.slotsMax].some((bound) => bound > 0 && call.slots > bound);
  }

  #isStopped(call: NaiveCall): boolean {
    if (this.settings.members.length === 0) return false;
    return this.#possible(call).every(({ isEnabled }) => !isEnabled);
  }

  #keyOf({ agent, caller }: NaiveCall): string | null {
    const { by } = this.settings.affinity;
    if (by === 'none') return null;
    if (by === 'caller') return `caller ${caller}`;
    return agent === null ? null : `agent ${agent}`;
  }

  /** The member that a call belongs to, unless that has refused it. */
  #ownOf(call: NaiveCall, now: number): string | null {
    const key = this.#keyOf(call);
    const known = key === null ? undefined : this.#belongs.get(key);
    const { members } = this.settings;
    if (members.length === 0 || known === undefined || now >= known.until) return null;
    const isServing = members.some((each) => each.id === known.member && each.isEnabled);
    return isServing && !call.excluded.includes(known.member) ? known.member : null;
  }

  #meanHold(): number {
    let mean = 10_000;
    for (const [index, heldMs] of this.#holds.entries()) {
      mean += Math.max(0.2, 1 / (index + 1)) * (heldMs - mean);
    }
    return mean;
  }
}

import type { MemberSettings } from '../../src/core/words/member.ts';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import type { Ticket } from '../../src/core/words/ticket.ts';
import type { NaiveHold, NaiveWaiter } from './naive-order.ts';

/** A lease by what its holder was told of where it runs; empty: the group named no members. */
interface Named {
  readonly named: string;
}

interface NaiveSite {
  readonly settings: GroupSettings;
  leases(): readonly (NaiveHold & Named)[];
}

/** A member as far as its slots are concerned. */
type Place = Pick<MemberSettings, 'slotsMax' | 'weight'> & { readonly id: string };

/** Where a waiter goes: to a member, to none before one of these has room, or to its own, which it waits for. */
type Placed =
  | { readonly kind: 'now'; readonly member: string }
  | { readonly kind: 'later'; readonly members: readonly string[] }
  | { readonly kind: 'held'; readonly member: string; readonly until: number };

/** The upstream of all calls. */
const UPSTREAM = 'openai';

/**
 * Members of a naive group: where its leases count, what is unclaimed at each, and where calls go, as plainly as
 * decision 30 says it. All are of the first tier and switched on.
 */
export class NaivePlaces {
  readonly #site: NaiveSite;
  readonly #unclaimed = new Map<string, number>();
  /** The members of all grants, in their order. */
  #granted: string[] = [];
  readonly #belongs = new Map<string, { readonly member: string; readonly until: number }>();

  constructor(site: NaiveSite) {
    this.#site = site;
  }

  /** Where a lease counts: a group without members has but one; the key of the upstream is that of its successor. */
  countsAt({ named }: Named): string {
    const { members } = this.#site.settings;
    if (members.length === 0 || named !== '') return members.length === 0 ? '' : named;
    return members.find(({ succeeds }) => succeeds === UPSTREAM)?.id ?? '';
  }

  /** Lists the members that serve, and all others where anything is held: these take nothing more. */
  all(): readonly Place[] {
    const serving = this.#serving();
    const ids = [
      ...this.#site.leases().map((lease) => this.countsAt(lease)),
      ...this.#unclaimed.keys(),
    ];
    const others = [...new Set(ids)].filter((id) => !serving.some((each) => each.id === id));
    return [...serving, ...others.map((id) => ({ id, slotsMax: 0, weight: 1 }))];
  }

  /** Counts the slots of which nobody has been heard since a reset, of one member or of all. */
  unclaimed(member?: string): number {
    if (member !== undefined) return this.#unclaimed.get(member) ?? 0;
    return [...this.#unclaimed.values()].reduce((sum, slots) => sum + slots, 0);
  }

  /** Counts those that a lease may have which names a member: there, and of a group that named none. */
  unclaimedFor({ member: named = '' }: { readonly member?: string }): number {
    const member = this.countsAt({ named });
    return this.unclaimed(member) + (member === '' ? 0 : this.unclaimed(''));
  }

  /** Takes slots out of those of a member, as many as there are. Returns how many. */
  claim(member: string, slots: number): number {
    const taken = Math.min(slots, this.unclaimed(member));
    this.holdUnclaimed(member, -taken);
    return taken;
  }

  holdUnclaimed(member: string, slots: number): void {
    this.#unclaimed.set(member, this.unclaimed(member) + slots);
  }

  expire(): void {
    this.#unclaimed.clear();
  }

  /** The group names no members any more: whoever comes counts at its only one. */
  unplace(): void {
    const slots = this.unclaimed();
    this.#unclaimed.clear();
    this.holdUnclaimed('', slots);
  }

  /** Begins anew with what a row marks at each member. */
  recover(marks: readonly (readonly [member: string, slots: number])[]): void {
    this.#granted = [];
    this.#belongs.clear();
    this.#unclaimed.clear();
    for (const [member, slots] of marks) this.holdUnclaimed(member, slots);
    if (this.#site.settings.members.length === 0) this.unplace();
  }

  noteGrant(lease: Pick<NaiveHold, 'holder'> & Named, now: number): void {
    this.#granted.push(lease.named);
    this.noteRun(lease, now);
  }

  /** A call runs somewhere: those that belong together with it stay there. */
  noteRun(lease: Pick<NaiveHold, 'holder'> & Named, now: number): void {
    const { members, affinity } = this.#site.settings;
    const key = this.#keyOf(lease.holder);
    if (members.length === 0 || key === null) return;
    this.#belongs.set(key, { member: this.countsAt(lease), until: now + affinity.forMs });
  }

  /** Lists the members that a call may go to. */
  possible({ excluded = [] }: Ticket): readonly Place[] {
    const serving = this.#serving();
    if (this.#site.settings.members.length === 0) return serving;
    return serving.filter(({ id }) => !excluded.some((each) => each === id));
  }

  /**
   * Places a waiter whose turn it is.
   *
   * @param barred members that somebody before it waits for
   * @param waiting the own members of those before it that wait for these
   */
  place(
    { ticket, heldUntil, deadlineAt }: NaiveWaiter,
    barred: readonly string[],
    waiting: readonly string[],
    meanHoldMs: number,
    now: number,
  ): Placed {
    const { slots } = ticket;
    const wide = this.possible(ticket).filter(({ slotsMax }) => slotsMax >= slots);
    const left = wide.filter(({ id }) => !barred.includes(id));
    const free = left.filter((place) => this.#hasRoom(place, slots));
    if (free.length === 0) {
      const isFull = left.length > 0 && this.#isFull(slots);
      return { kind: 'later', members: (isFull ? this.#serving() : left).map(({ id }) => id) };
    }
    const own = wide.find(({ id }) => id === this.#ownOf(ticket, now));
    if (own !== undefined && free.includes(own)) return { kind: 'now', member: own.id };
    if (own !== undefined && ticket.wait && !ticket.isTry) {
      const { waitMs } = this.#site.settings.affinity;
      const before = waiting.filter((id) => id === own.id).length;
      const roomAt = now + ((before + slots) * meanHoldMs) / own.slotsMax;
      const until = Math.min(heldUntil ?? now + waitMs, deadlineAt);
      const isHopeless = waitMs === 0 || roomAt > now + waitMs;
      if (!isHopeless && until > now) return { kind: 'held', member: own.id, until };
    }
    return { kind: 'now', member: this.#best(free) };
  }

  /** Picks the one with the smallest part of its slots in use, then the one without a grant for longest. */
  #best(free: readonly Place[]): string {
    const loadOf = ({ id, slotsMax, weight }: Place): number =>
      (this.#inUse(id) + this.unclaimed(id)) / (weight * (slotsMax === Infinity ? 100 : slotsMax));
    const turnOf = ({ id }: Place): number => this.#granted.lastIndexOf(id);
    const [best] = free.toSorted((a, b) => loadOf(a) - loadOf(b) || turnOf(a) - turnOf(b));
    return best?.id ?? '';
  }

  #serving(): readonly Place[] {
    const { members, slotsMax } = this.#site.settings;
    return members.length > 0 ? members : [{ id: '', slotsMax, weight: 1 }];
  }

  #hasRoom({ id, slotsMax }: Place, slots: number): boolean {
    if (this.#isFull(slots)) return false;
    // What was handed out while the group named no members may be anywhere.
    const unplaced = id === '' ? 0 : this.unclaimed('');
    return this.#inUse(id) + this.unclaimed(id) + unplaced + slots <= slotsMax;
  }

  /** Whether the limit over all has no room. */
  #isFull(slots: number): boolean {
    const inUse = this.#site.leases().reduce((sum, lease) => sum + lease.slots, 0);
    return inUse + this.unclaimed() + slots > this.#site.settings.slotsMax;
  }

  #inUse(id: string): number {
    const here = this.#site.leases().filter((lease) => this.countsAt(lease) === id);
    return here.reduce((sum, lease) => sum + lease.slots, 0);
  }

  #keyOf({ tenant, agent, caller }: Ticket['holder']): string | null {
    const { by } = this.#site.settings.affinity;
    if (by === 'none') return null;
    if (by === 'caller') return `caller ${caller}`;
    return agent === null ? null : `agent ${agent} of ${tenant}`;
  }

  /** The member that a call belongs to, unless that has refused it. */
  #ownOf({ holder, excluded = [] }: Ticket, now: number): string | null {
    const key = this.#keyOf(holder);
    const known = key === null ? undefined : this.#belongs.get(key);
    if (known === undefined || now >= known.until) return null;
    return excluded.some((id) => id === known.member) ? null : known.member;
  }
}

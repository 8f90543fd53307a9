import type { NaiveWaiter } from './naive-order.ts';
import type { NaivePosition } from './naive-places.ts';
import type { NaiveRoom, NaiveSite } from './naive-room.ts';

/** The place of a waiter: a member, none before one of these has room, or its own member, which it waits for. */
type NaivePlacingPlaced =
  | { readonly kind: 'now'; readonly member: string }
  | { readonly kind: 'later'; readonly members: readonly string[]; readonly at: number }
  | { readonly kind: 'held'; readonly member: string; readonly until: number };

interface When {
  readonly meanHoldMs: number;
  /** The earliest instant of the next grant. */
  readonly grantsFrom: number;
  readonly now: number;
}

/** Places calls of a naive group, as in decision 30. A group without members has one. */
export class NaivePlacing {
  readonly #site: NaiveSite;
  readonly #room: NaiveRoom;

  constructor(site: NaiveSite, room: NaiveRoom) {
    this.#site = site;
    this.#room = room;
  }

  /**
   * Places the first waiter.
   *
   * @param barred members that an earlier waiter waits for
   * @param waiting own members of the earlier waiters that wait for these
   */
  place(
    waiter: NaiveWaiter,
    barred: readonly string[],
    waiting: readonly string[],
    when: When,
  ): NaivePlacingPlaced {
    const { ticket, heldUntil, deadlineAt } = waiter;
    const { now } = when;
    const { slots } = ticket;
    const { places, settings } = this.#site;
    const isSplit = settings.members.length > 0;
    const possible = places
      .possible(ticket)
      .filter((place) => !isSplit || place.slotsMax >= slots)
      .filter(({ id }) => !isSplit || !this.#room.isHeldBackAt(id, ticket))
      .filter(({ id }) => this.#room.heldBy(id, ticket, now) === undefined);
    const left = possible.filter(({ id }) => !barred.includes(id));
    const rooms = left.map((place) => this.#roomAt(place, slots, when));
    const free = left.filter((_, index) => (rooms[index] ?? Infinity) <= now);
    if (free.length === 0) return this.#later(left, rooms, slots, now);
    const own = possible.find(({ id }) => id === places.ownOf(ticket, now));
    if (own !== undefined && free.includes(own)) return { kind: 'now', member: own.id };
    if (own !== undefined && ticket.wait && !ticket.isTry) {
      const { waitMs } = settings.affinity;
      const before = waiting.filter((id) => id === own.id).length;
      const roomAt = this.#soonestAt(own, before, slots, when);
      const until = Math.min(heldUntil ?? now + waitMs, deadlineAt);
      const isHopeless = waitMs === 0 || roomAt > now + waitMs;
      if (!isHopeless && until > now) return { kind: 'held', member: own.id, until };
    }
    return { kind: 'now', member: this.#best(free) };
  }

  /** A waiter without room waits for the member that has room first, for all if no time is known, or for the group. */
  #later(
    left: readonly NaivePosition[],
    rooms: readonly number[],
    slots: number,
    now: number,
  ): NaivePlacingPlaced {
    const at = Math.min(...rooms);
    const ids = left.map(({ id }) => id);
    const isGroupFull = this.#site.settings.members.length > 0 && this.#overAllAt(slots, now) > now;
    if (isGroupFull && left.length > 0) {
      return { kind: 'later', members: this.#site.places.serving().map(({ id }) => id), at };
    }
    const first = ids[rooms.indexOf(at)];
    return { kind: 'later', members: at === Infinity || first === undefined ? ids : [first], at };
  }

  /** Whether a member has no room for so many slots now. */
  isFullAt(id: string, slots: number, grantsFrom: number, now: number): boolean {
    const place = this.#site.places.serving().find((each) => each.id === id);
    const when = { meanHoldMs: 0, grantsFrom, now };
    return place === undefined || this.#roomAt(place, slots, when) > now;
  }

  #roomAt({ id, slotsMax }: NaivePosition, slots: number, { grantsFrom, now }: When): number {
    const { paused, members } = this.#site.settings;
    if (paused || slotsMax === 0) return Infinity;
    const roomAt = Math.max(now, grantsFrom, this.#room.roomAt(id, slots, now));
    return members.length > 0 ? Math.max(roomAt, this.#overAllAt(slots, now)) : roomAt;
  }

  /** When the limit over all members has room. */
  #overAllAt(slots: number, now: number): number {
    const inUse = this.#site.leases().reduce((sum, lease) => sum + lease.slots, 0);
    const all = inUse + this.#site.places.orphaned() + slots;
    return all > this.#site.settings.slotsMax ? Infinity : now;
  }

  /** When a member is likely to have a slot for a waiter, after the earlier waiters for that member. */
  #soonestAt(own: NaivePosition, before: number, slots: number, when: When): number {
    const { now, meanHoldMs } = when;
    const slotsMax = this.#room.slotsLearnedAt(own.id);
    if (slotsMax === 0) return Infinity;
    const bySlots = now + ((before + slots) * meanHoldMs) / slotsMax;
    const lessons = this.#room.scopes.member(own.id).own;
    const block = this.#room.blockOf(lessons, now);
    if (block !== null) {
      const unplaced = own.id === '' ? 0 : this.#site.places.orphaned('');
      const isFull = this.#room.inUse(own.id, lessons) + unplaced + slots > slotsMax;
      return isFull ? Math.max(block.until, bySlots) : block.until;
    }
    const byTime = this.#roomAt(own, slots, when);
    return byTime === Infinity ? bySlots : Math.max(byTime, bySlots);
  }

  /** Picks the member with the smallest share of its slots in use, then the one without a grant for longest. */
  #best(free: readonly NaivePosition[]): string {
    const loadOf = ({ id, weight }: NaivePosition): number => {
      const slotsMax = this.#room.slotsLearnedAt(id);
      const inUse = this.#room.inUse(id, this.#room.scopes.member(id).own);
      return inUse / (weight * (slotsMax === Infinity ? 100 : slotsMax));
    };
    const turnOf = ({ id }: NaivePosition): number => this.#site.places.turnOf(id);
    const [best] = free.toSorted((a, b) => loadOf(a) - loadOf(b) || turnOf(a) - turnOf(b));
    return best?.id ?? '';
  }
}

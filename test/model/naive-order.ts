import type { WaitCause } from '../../src/core/parts/decision-log.ts';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import type { Lane, Ticket } from '../../src/core/words/ticket.ts';
import type { NaiveAnswers } from './naive-answers.ts';
import type { NaiveRoom } from './naive-room.ts';
import type { NaiveNarrower, NaiveScope } from './naive-scopes.ts';

/**
 * The scheduling order in plain form, as `design/order.md` states it: every call that may start, sorted by the whole
 * tuple. Nothing is kept sorted and nothing is remembered but what tenants and agents have had.
 */

interface NaiveShare {
  service: number;
  floor: number;
}

/** The service of a tenant, or of an agent of one. */
interface NaiveAccount extends NaiveShare {
  readonly tenant: string;
  /** Null: the tenant itself, which has a share for each lane instead of one. */
  readonly agent: string | null;
  readonly lanes: Record<Lane, NaiveShare>;
  startedAt: number;
  lastSeenAt: number;
  /** When it last had a call that waits or runs no more. */
  activeAt: number;
  /** Of a tenant: service of its agent that was granted last, before its charge. */
  lastAgentService: number;
}

/** The position of a waiter on arrival, its wait reason, and the calls to which the reason applies (null: all). */
export interface NaiveArrival {
  readonly position: number;
  readonly cause: WaitCause;
  readonly scope: NaiveScope | null;
}

export interface NaiveWaiter {
  readonly ticketId: string;
  readonly leaseId: string;
  ticket: Ticket;
  readonly enqueuedAt: number;
  readonly age: number;
  readonly arrival: number;
  readonly deadlineAt: number;
  lane: Lane;
  isPromoted: boolean;
  /** Its caller has lost an answer. */
  isAnew: boolean;
  sliceEndsAt: number | null;
  orphanAt: number;
  /** Until when it waits for its own member, once it does. */
  heldUntil: number | null;
  /** null if it is not queued yet, or does not allow queueing. */
  waitsFor: NaiveArrival | null;
}

/** The part of a lease that matters to the order. */
export interface NaiveHold {
  readonly holder: Ticket['holder'];
  readonly lane: Lane;
  readonly slots: number;
  waitsElsewhere: boolean;
}

/** The holder of a call, as far as the order cares. */
type NaiveOrderHolder = Pick<Ticket['holder'], 'tenant' | 'agent' | 'session'>;

/** The run of a call within its tenant: its agent, else its session, else that of all calls with neither. */
export function runOf({ agent, session }: NaiveOrderHolder): string {
  return agent ?? (session === undefined ? '' : `session ${session}`);
}

/** How the order sees the group. */
export interface NaiveView {
  readonly settings: GroupSettings;
  readonly waiters: readonly NaiveWaiter[];
  readonly leases: readonly NaiveHold[];
  readonly room: NaiveRoom;
  readonly answers: NaiveAnswers;
  readonly now: number;
  /** Mean time for which calls hold their slots. */
  readonly meanHoldMs: number;
  /** Other pools that are full, and until when calls that need them are passed over. */
  readonly passedOver: ReadonlyMap<string, number>;
}

const LANES: readonly Lane[] = ['high', 'normal', 'low'];

/** A cap that the best waiter does not fit under: others under it must not overtake that one. */
type Bar = (waiter: NaiveWaiter) => boolean;

export class NaiveOrder {
  #accounts: NaiveAccount[] = [];
  readonly #lastService: Record<Lane, number> = { high: 0, normal: 0, low: 0 };
  credit: Record<Lane, number> = { high: 0, normal: 0, low: 0 };

  account(tenant: string, agent: string | null, now: number): NaiveAccount {
    const found = this.#known(tenant, agent);
    if (found !== undefined) return found;
    const times = { startedAt: now, lastSeenAt: now, activeAt: -Infinity };
    const none = () => ({ service: 0, floor: 0 });
    const lanes = { high: none(), normal: none(), low: none() };
    const fresh = { tenant, agent, ...none(), lanes, lastAgentService: 0, ...times };
    this.#accounts.push(fresh);
    return fresh;
  }

  #known(tenant: string, agent: string | null): NaiveAccount | undefined {
    return this.#accounts.find((each) => each.tenant === tenant && each.agent === agent);
  }

  /**
   * An agent run has a call at this instant, the first of which the group knows reached it at `at`: after
   * a quarter of an hour without one it is another run.
   */
  see(of: NaiveOrderHolder, now: number, view: NaiveView, at = now): NaiveAccount {
    const { tenant } = of;
    const known = this.#known(tenant, runOf(of));
    const isBusy =
      view.waiters.some(({ ticket }) => isAgent(ticket.holder, of)) ||
      view.leases.some(({ holder, slots }) => slots > 0 && isAgent(holder, of));
    const isNew = known === undefined || (!isBusy && now - known.lastSeenAt > 900_000);
    const account = this.account(tenant, runOf(of), now);
    if (isNew) Object.assign(account, { startedAt: at, activeAt: -Infinity, service: 0, floor: 0 });
    account.startedAt = Math.min(at, account.startedAt);
    account.lastSeenAt = now;
    return account;
  }

  /** A call has got its slot, has ended, or has left the queue. */
  noteActive(of: NaiveOrderHolder, now: number): void {
    for (const agent of [null, runOf(of)]) this.account(of.tenant, agent, now).activeAt = now;
  }

  stillWaits(of: NaiveOrderHolder, now: number): void {
    this.account(of.tenant, runOf(of), now).lastSeenAt = now;
  }

  /**
   * Somebody begins to wait: in each lane where it did not, it starts level with those who do, unless its call waited for
   * another group since before its other calls had gone. Returns how to put them back where they were.
   */
  join(
    { holder, needs, enqueuedAt }: Pick<Ticket, 'holder' | 'needs' | 'enqueuedAt'>,
    now: number,
    view: NaiveView,
  ): () => void {
    const { tenant } = holder;
    const ofTenant = this.account(tenant, null, now);
    const ofAgent = this.account(tenant, runOf(holder), now);
    const shares = [...LANES.map((each) => ofTenant.lanes[each]), ofAgent];
    const before = shares.map(({ service, floor }) => ({ service, floor }));
    const all = view.waiters.map(({ ticket }) => ticket.holder);
    const catchUp = (share: NaiveShare, services: number[], last: number) => {
      const level = services.length > 0 ? Math.min(...services) : last;
      share.service = Math.max(share.service, level);
      share.floor = level;
    };
    const hasWaited = ({ activeAt }: NaiveAccount): boolean =>
      needs !== undefined && enqueuedAt <= activeAt;
    for (const lane of LANES) {
      const beside = view.waiters.filter((each) => each.lane === lane);
      if (beside.some(({ ticket }) => ticket.holder.tenant === tenant)) continue;
      if (hasWaited(ofTenant)) continue;
      const services = beside.map(
        ({ ticket }) => this.account(ticket.holder.tenant, null, now).lanes[lane].service,
      );
      catchUp(ofTenant.lanes[lane], services, this.#lastService[lane]);
    }
    const siblings = all.filter((each) => each.tenant === tenant);
    const isFirst = siblings.every((each) => runOf(each) !== runOf(holder));
    if (view.settings.byAgent && isFirst && !hasWaited(ofAgent)) {
      const services = siblings.map((each) => this.account(tenant, runOf(each), now).service);
      catchUp(ofAgent, services, ofTenant.lastAgentService);
    }
    return () => {
      for (const [index, share] of shares.entries()) Object.assign(share, before[index]);
    };
  }

  /** A waiter, already out of the queue, is granted. */
  granted({ ticket, lane }: NaiveWaiter, now: number, view: NaiveView): void {
    this.credit[lane] = Math.max(0, this.credit[lane] - 1);
    for (const each of LANES) {
      if (!view.waiters.some((waiter) => waiter.lane === each)) continue;
      this.credit[each] = Math.min(2, this.credit[each] + view.settings.laneShares[each]);
    }
    const { tenant } = ticket.holder;
    const account = this.account(tenant, null, now);
    for (const each of LANES) {
      const { service } = account.lanes[each];
      this.#lastService[each] =
        each === lane ? service : Math.max(this.#lastService[each], service);
    }
    const ofAgent = this.account(tenant, runOf(ticket.holder), now);
    account.lastAgentService = ofAgent.service;
    ofAgent.lastSeenAt = now;
    if (view.room.scopes.rules['a line that scopes hold gains no credit']) {
      this.#levelHeld(tenant, now, view);
    }
  }

  /** Raises the service of held lines to that of lines that may start, and of held agents of the granted tenant. */
  #levelHeld(granted: string, now: number, { settings, waiters, room }: NaiveView): void {
    const catchUp = (
      groups: readonly (readonly NaiveWaiter[])[],
      shareOf: (waiter: NaiveWaiter) => NaiveShare,
      last: number,
    ) => {
      const isHeld = (group: readonly NaiveWaiter[]): boolean =>
        group.every(({ ticket }) => room.isHeld(ticket, now));
      const sharesOf = (some: typeof groups): NaiveShare[] =>
        some.flatMap(([first]) => (first === undefined ? [] : shareOf(first)));
      const held = sharesOf(groups.filter(isHeld));
      const free = sharesOf(groups.filter((group) => !isHeld(group)));
      const level = free.length === 0 ? last : Math.min(...free.map(({ service }) => service));
      const least = Math.min(...held.map(({ service }) => service));
      if (least >= level) return;
      for (const share of held) {
        const behind = level + Math.min(60_000, share.service - least);
        share.service = Math.max(share.service, behind);
        share.floor = Math.max(share.floor, level);
      }
    };
    const groupsBy = (some: readonly NaiveWaiter[], key: 'tenant' | 'agent') =>
      Object.values(
        Object.groupBy(some, ({ ticket: { holder } }) =>
          key === 'tenant' ? holder.tenant : runOf(holder),
        ),
      ).map((group) => group ?? []);
    for (const lane of LANES) {
      const inLane = groupsBy(
        waiters.filter((each) => each.lane === lane),
        'tenant',
      );
      const shareOf = ({ ticket }: NaiveWaiter): NaiveShare =>
        this.account(ticket.holder.tenant, null, now).lanes[lane];
      catchUp(inLane, shareOf, this.#lastService[lane]);
    }
    if (!settings.byAgent) return;
    const own = waiters.filter(({ ticket }) => ticket.holder.tenant === granted);
    const agentOf = ({ ticket }: NaiveWaiter): NaiveShare =>
      this.account(granted, runOf(ticket.holder), now);
    catchUp(groupsBy(own, 'agent'), agentOf, this.account(granted, null, now).lastAgentService);
  }

  charge(holder: NaiveOrderHolder, slotMs: number, now: number, view: NaiveView): void {
    this.see(holder, now, view);
    const { tenant } = holder;
    const weight =
      Object.entries(view.settings.weights).find(([name]) => name === tenant)?.[1] ?? 1;
    const charge = (share: NaiveShare, by: number) => {
      share.service = Math.max(share.floor, share.service + slotMs / by);
    };
    for (const lane of LANES) charge(this.account(tenant, null, now).lanes[lane], weight);
    charge(this.account(tenant, runOf(holder), now), 1);
  }

  /** From now on the agents of a tenant share: they begin level. */
  levelAgents(): void {
    for (const account of this.#accounts) {
      account.lastAgentService = 0;
      if (account.agent !== null) Object.assign(account, { service: 0, floor: 0 });
    }
  }

  /** Finds the first waiter, with or without room for it. Calls that were refused more often come later. */
  next(view: NaiveView): NaiveWaiter | undefined {
    for (let refusalsMax = 1; ; refusalsMax += 1) {
      const waiters = view.waiters.filter(
        ({ ticketId }) => view.answers.refusalsOf(ticketId) <= refusalsMax,
      );
      const best = this.#nextOf({ ...view, waiters });
      if (best !== undefined || refusalsMax >= view.answers.refusalsMax()) return best;
    }
  }

  #nextOf(view: NaiveView): NaiveWaiter | undefined {
    const { room, now } = view;
    const bars: Bar[] = [];
    let holding: readonly NaiveNarrower[] = [];
    const blocksNone = room.scopes.rules['a call that its scope holds blocks no other call'];
    // Nor by a cap of its own.
    const waiters = view.waiters.filter(({ ticket }) => !blocksNone || !room.isHeld(ticket, now));
    for (;;) {
      const [best] = waiters
        .filter((waiter) => this.#mayGo(waiter, view) && !bars.some((bar) => bar(waiter)))
        .filter(({ ticket }) => !room.isBehind(ticket, holding))
        .toSorted((a, b) => this.#compare(a, b, view));
      if (best === undefined) return undefined;
      const bar = this.#barOf(best, view);
      const holds = bar === null ? room.scopesHolding(best.ticket, now) : [];
      if (bar === null && holds.length === 0) return best;
      if (bar !== null) bars.push(bar);
      else if (blocksNone) holding = [...holding, ...holds];
      else return undefined;
    }
  }

  /** Number of waiters ahead of a waiter. */
  ahead(waiter: NaiveWaiter, view: NaiveView): number {
    return this.#before(waiter, view).length;
  }

  /**
   * Number of waiters likely to start first: of each other tenant as many as bring it level. Those do not count that are passed
   * over, or held, unless their scopes hold this waiter too.
   */
  turnsAhead(waiter: NaiveWaiter, view: NaiveView): number {
    if (waiter.isPromoted) return 0;
    const counted = view.waiters.filter((each) => {
      return each === waiter || (!isHeldBefore(each, waiter, view) && !isPassedOver(each, view));
    });
    const hadBy = ({ ticket: { holder }, lane }: NaiveWaiter): number =>
      this.account(holder.tenant, null, view.now).lanes[lane].service;
    const { tenant } = waiter.ticket.holder;
    const inLane = counted.filter(({ lane }) => lane === waiter.lane);
    const own = inLane.filter(({ ticket }) => ticket.holder.tenant === tenant).toSorted(byAge);
    const before = own.indexOf(waiter);
    const higher = counted.filter(
      ({ lane }) => LANES.indexOf(lane) < LANES.indexOf(waiter.lane),
    ).length;
    const others = inLane.filter(({ ticket }) => ticket.holder.tenant !== tenant);
    const lines = Object.values(Object.groupBy(others, ({ ticket }) => ticket.holder.tenant));
    return lines.reduce((sum, line = []) => {
      const [first = waiter] = line;
      const behindMs = hadBy(waiter) - hadBy(first);
      const turns = Math.floor(before + 1 + behindMs / Math.max(1, view.meanHoldMs));
      return sum + Math.max(0, Math.min(turns, line.length));
    }, higher + before);
  }

  /** Lists all waiters of higher lanes, those of its tenant ahead of it, and as many of each other tenant. */
  #before(waiter: NaiveWaiter, { waiters }: NaiveView): readonly NaiveWaiter[] {
    if (waiter.isPromoted) return [];
    const higher = waiters.filter(({ lane }) => LANES.indexOf(lane) < LANES.indexOf(waiter.lane));
    const inLane = Object.values(
      Object.groupBy(
        waiters.filter(({ lane }) => lane === waiter.lane),
        ({ ticket }) => ticket.holder.tenant,
      ),
    ).map((each = []) => each.toSorted(byAge));
    const own = inLane.find((each) => each.includes(waiter)) ?? [];
    const before = own.indexOf(waiter);
    const others = inLane.filter((each) => each !== own);
    return [
      ...higher,
      ...own.slice(0, before),
      ...others.flatMap((each) => each.slice(0, before + 1)),
    ];
  }

  /** How many go before a waiter in any case: its elders, and of each other tenant (and agent of its own) the oldest. */
  surelyAhead(waiter: NaiveWaiter, view: NaiveView): number {
    if (waiter.isPromoted) return 0;
    const { tenant } = waiter.ticket.holder;
    const turnsOf = ({ lane, ticket: { holder } }: NaiveWaiter): string => {
      const isOwn = lane === waiter.lane && holder.tenant === tenant;
      return JSON.stringify([lane, holder.tenant, isOwn && view.settings.byAgent && runOf(holder)]);
    };
    const counts = Object.values(Object.groupBy(view.waiters, turnsOf)).map((group = []) => {
      const inLine = group.toSorted(byAge);
      const [oldest] = inLine;
      if (oldest === undefined) return 0;
      if (group.includes(waiter)) {
        const elders = inLine.slice(0, inLine.indexOf(waiter));
        return elders.filter((each) => !isHeldBefore(each, waiter, view)).length;
      }
      if (view.answers.refusalsOf(oldest.ticketId) > 1) return 0;
      if (isHeldBefore(oldest, waiter, view)) return 0;
      return this.#isReady(oldest, view) && this.#compare(oldest, waiter, view) < 0 ? 1 : 0;
    });
    return counts.reduce((sum, count) => sum + count, 0);
  }

  #compare(a: NaiveWaiter, b: NaiveWaiter, view: NaiveView): number {
    const [one, two] = [this.#tuple(a, view), this.#tuple(b, view)];
    for (const [index, value] of one.entries()) {
      const other = two[index] ?? 0;
      if (value !== other) return value - other;
    }
    return 0;
  }

  /** The place of a waiter; the first number that differs decides, and the least goes first. */
  #tuple(waiter: NaiveWaiter, { settings, leases }: NaiveView): number[] {
    const { ticket, lane } = waiter;
    const { tenant } = ticket.holder;
    const ofTenant = slotsOf(leases, ({ holder }) => holder.tenant === tenant);
    const ofLane = slotsOf(leases, (lease) => lease.lane === lane);
    const reserve = Object.entries(settings.reserved).find(([name]) => name === tenant)?.[1] ?? 0;
    const isReserved = ofTenant < reserve || ofLane < (settings.reservedLanes[lane] ?? 0);
    const isOwed = this.credit[lane] >= 1 - 1e-9;
    const agentService = this.account(tenant, runOf(ticket.holder), 0).service;
    return [
      waiter.isPromoted ? 0 : 1,
      isReserved ? 0 : 1,
      isOwed ? -this.credit[lane] : 1,
      LANES.indexOf(lane),
      this.account(tenant, null, 0).lanes[lane].service,
      settings.byAgent ? agentService : 0,
      waiter.age,
      waiter.arrival,
    ];
  }

  #mayGo(waiter: NaiveWaiter, view: NaiveView): boolean {
    return waiter.sliceEndsAt !== null && this.#isReady(waiter, view);
  }

  #isReady(waiter: NaiveWaiter, view: NaiveView): boolean {
    const { ticket } = waiter;
    const { settings, leases, room } = view;
    if (room.isHeldBack(ticket) || isPassedOver(waiter, view)) return false;
    const { tenant, agent } = ticket.holder;
    const ofTenant = slotsOf(leases, ({ holder }) => holder.tenant === tenant);
    const ofAgent = slotsOf(leases, ({ holder }) => isAgent(holder, ticket.holder));
    if (ofTenant >= settings.slotsMaxEach) return false;
    if (agent !== null && ofAgent >= settings.slotsMaxEachAgent) return false;
    if (!ticket.waitsElsewhere) return true;
    return !isProbed(room) || !doOthersWaitElsewhere(leases);
  }

  /** Whether no own cap stops a waiter. */
  isUnderCap(waiter: NaiveWaiter, view: NaiveView): boolean {
    return this.#barOf(waiter, view) === null;
  }

  /** Finds who has to wait because the best waiter wants more than is left under a cap of its own. */
  #barOf({ ticket }: NaiveWaiter, { settings, leases, room }: NaiveView): Bar | null {
    const { holder, slots, waitsElsewhere } = ticket;
    const ofTenant = slotsOf(leases, (lease) => lease.holder.tenant === holder.tenant);
    if (ofTenant + slots > settings.slotsMaxEach) {
      return (other) => other.ticket.holder.tenant === holder.tenant;
    }
    const ofAgent = slotsOf(leases, (lease) => isAgent(lease.holder, holder));
    if (holder.agent !== null && ofAgent + slots > settings.slotsMaxEachAgent) {
      return (other) => isAgent(other.ticket.holder, holder);
    }
    const isTooMuch = isProbed(room) && doOthersWaitElsewhere(leases);
    return waitsElsewhere && isTooMuch ? (other) => other.ticket.waitsElsewhere : null;
  }
}

/** Whether leases of calls that wait in other groups hold slots. Nested calls run on the slots of their parents. */
function doOthersWaitElsewhere(leases: NaiveView['leases']): boolean {
  return leases.some((lease) => lease.waitsElsewhere && lease.slots > 0);
}

/** Whether single calls probe some member. Calls that wait elsewhere would all start at once. */
function isProbed(room: NaiveRoom): boolean {
  return room
    .serving()
    .some(({ own: { breaker, pause } }) => breaker.phase !== 'closed' || pause.waitMs > 0);
}

/** Whether scopes hold a call ahead of a waiter but not the waiter. */
function isHeldBefore(
  { ticket }: NaiveWaiter,
  waiter: NaiveWaiter,
  { room, now }: NaiveView,
): boolean {
  const isOut = room.scopes.rules['a call that its scope holds delays no other call'];
  return isOut && room.isHeld(ticket, now) && !room.isHeld(waiter.ticket, now);
}

/** Whether a call needs another pool that is full. */
function isPassedOver(
  { ticket: { needs = [] } }: NaiveWaiter,
  { passedOver, now }: NaiveView,
): boolean {
  return needs.some((pool) => (passedOver.get(pool) ?? -Infinity) > now);
}

function isAgent(a: NaiveOrderHolder, b: NaiveOrderHolder): boolean {
  return a.tenant === b.tenant && runOf(a) === runOf(b);
}

export function byAge(a: NaiveWaiter, b: NaiveWaiter): number {
  return a.age - b.age || a.arrival - b.arrival;
}

export function slotsOf(
  leases: readonly NaiveHold[],
  isMeant: (lease: NaiveHold) => boolean,
): number {
  return leases.filter(isMeant).reduce((sum, { slots }) => sum + slots, 0);
}

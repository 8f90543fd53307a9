import type { InstantMs, TicketId } from './words/ids.ts';
import { LANES, type Demand, type Lane } from './words/ticket.ts';
import { allows } from './parts/breaker.ts';
import type { Outlook, QueuePosition, WaitCause, WaitReason } from './parts/decision-log.ts';
import { isPassedOver, compareWaiters, placeOf, type Waiter } from './parts/queue.ts';
import { weightOf, laneTurns, noteLaneGrant, type TenantAccount } from './parts/accounts.ts';
import {
  blockBy,
  blockOf,
  memberSlotsMaxAt,
  roomAt,
  slotsMaxAt,
  slotsUsedAt,
  blockFor,
  scopesHolding,
} from './capacity.ts';
import { foreseenWaitMs, isStalled, quietMs, waitersAhead, holdToChargeMs } from './estimate.ts';
import type { ScopeLimiter, Member } from './member.ts';
import { notExcluded, NEVER, type GroupState } from './state.ts';
import { isUnderCap } from './order.ts';
import { aboutCalls } from './scopes.ts';

/** What a waiter can expect: why it waits, its position, and the order in which others start. */

/** Returns the position of a ticket, its wait reason and, if possible, its expected wait. */
export function queuePlace(state: GroupState, ticketId: TicketId, now: InstantMs): QueuePosition {
  const waiter = state.queue.byTicket.get(ticketId);
  if (waiter === undefined) return { position: 0, estimateMs: null, waitsFor: null, quietMs: null };
  const position = waitersAhead(state, waiter);
  const { estimateMs, ...waitsFor } = outlookOf(state, waiter, position, now);
  return {
    position,
    estimateMs,
    waitsFor,
    quietMs: estimateMs === null ? stalledMs(state, now) : null,
  };
}

/** How long no call has ended, if that prevents an estimate of waits. null if calls end, or if none runs. */
export function stalledMs(state: GroupState, now: InstantMs): number | null {
  if (state.slotsInUse === 0 || !isStalled(state, now)) return null;
  const forMs = quietMs(state, now);
  return Number.isFinite(forMs) ? Math.round(forMs) : null;
}

/** Returns why a waiter with `ahead` waiters before it waits now, and how much longer it probably will. */
export function outlookOf(
  state: GroupState,
  waiter: Waiter,
  ahead: number,
  now: InstantMs,
): Outlook {
  const reason = waitReason(state, waiter, now);
  return { ...reason, estimateMs: estimateBy(reason, state, waiter, ahead, now) };
}

function estimateBy(
  { cause }: WaitReason,
  state: GroupState,
  waiter: Waiter,
  ahead: number,
  now: InstantMs,
): number | null {
  const inTurnMs = (): number | null => foreseenWaitMs(state, ahead, now);
  switch (cause) {
    // An operator ends the first of these. The ends that the others depend on are not counted.
    case 'operator_pause':
    case 'cap':
    case 'elsewhere':
      return null;
    case 'upstream_pause':
    case 'breaker':
    case 'members_out':
      return notBefore(blockFor(state, waiter.ticket, now)?.until ?? NEVER, inTurnMs(), now);
    case 'settling':
      return notBefore(state.grantsFrom, inTurnMs(), now);
    case 'slots': {
      const isOfScope = scopesHolding(state, waiter, now).length > 0;
      return isOfScope ? null : foreseenWaitMs(state, ahead, now, 1);
    }
    case 'rates':
      return inTurnMs();
    case 'member':
      return notBefore(waiter.heldOutUntil ?? now, 0, now);
    case 'order': {
      const doOthersHold = ahead > 0 && state.slotsInUse > 0;
      return doOthersHold && isStalled(state, now) ? null : inTurnMs();
    }
  }
}

/** Extends a wait at least until an instant. null if its end is unknown. */
function notBefore(until: InstantMs, waitMs: number | null, now: InstantMs): number | null {
  if (waitMs === null || until === NEVER) return null;
  return Math.max(waitMs, Math.round(until - now), 0);
}

const CAUSE_OF_BLOCK = {
  paused: 'upstream_pause',
  breaker_open: 'breaker',
  members_out: 'members_out',
} as const;

function hasSlots(
  state: GroupState,
  members: readonly Member[],
  { slots }: Demand,
  now: InstantMs,
): boolean {
  if (state.slotsInUse + slots > slotsMaxAt(state, now)) return false;
  return members.some(
    (member) => slotsUsedAt(state, member) + slots <= memberSlotsMaxAt(member, now),
  );
}

function reasonOfScope(limiter: ScopeLimiter, now: InstantMs): WaitReason {
  const { controls } = limiter;
  const block = blockBy(controls, now);
  const cause = allows(controls.breaker, now) ? 'slots' : 'breaker';
  return { cause: block === null ? cause : CAUSE_OF_BLOCK[block.reason], ...aboutCalls(limiter) };
}

/**
 * Returns why a waiter cannot be granted now. Of several reasons it is the one that the ends of other calls cannot
 * resolve.
 */
export function waitReason(state: GroupState, waiter: Waiter, now: InstantMs): WaitReason {
  if (state.settings.paused) return { cause: 'operator_pause' };
  const members = notExcluded(state, waiter.ticket);
  const [sole, other] = members;
  const about = sole === undefined || other !== undefined ? {} : aboutCalls(sole);
  const block = blockOf(members, now);
  if (block?.reason === 'members_out') return { cause: 'members_out' };
  if (block !== null) return { cause: CAUSE_OF_BLOCK[block.reason], ...about };
  if (members.every(({ controls }) => !allows(controls.breaker, now))) {
    return { cause: 'breaker', ...about };
  }
  if (state.grantsFrom > now) return { cause: 'settling' };
  const [scope] = scopesHolding(state, waiter, now);
  if (scope !== undefined) return reasonOfScope(scope, now);
  const cause = causeOfAll(state, waiter, members, now);
  const isLearned = cause === 'slots' && sole?.controls.ceiling.slots !== null;
  return { cause, ...(isLearned && about) };
}

/** Returns why a waiter waits if neither its upstreams nor its scopes stop it. */
function causeOfAll(
  state: GroupState,
  waiter: Waiter,
  members: readonly Member[],
  now: InstantMs,
): WaitCause {
  if (!isUnderCap(state, waiter)) return 'cap';
  if (!hasSlots(state, members, waiter.demand, now)) return 'slots';
  if (members.every((member) => roomAt(state, member, waiter.demand, now) > now)) return 'rates';
  if (isPassedOver(state.passedOver, waiter.ticket, now)) return 'elsewhere';
  return waiter.heldOutUntil === null ? 'order' : 'member';
}

/**
 * Lists all waiters in the order in which they will probably be granted. It plays the comparator of `order.ts` forward
 * and charges the mean hold for every grant. It ignores caps, reservations, service of agents in other lanes, and
 * future calls. It changes nothing.
 */
export function probableOrder(state: GroupState): Waiter[] {
  const waiters = [...state.queue.byTicket.values()];
  const charged = new Map<TenantAccount, number>();
  const laneCredit = { ...state.laneCredit };
  return [
    ...playForward(state, waiters.filter(isPromoted), charged, laneCredit),
    ...playForward(
      state,
      waiters.filter((waiter) => !isPromoted(waiter)),
      charged,
      laneCredit,
    ),
  ];
}

function isPromoted(waiter: Waiter): boolean {
  return waiter.isPromoted;
}

/** A waiter and the forecast service of its agent. 0 if agents do not share. */
interface ForecastWaiter {
  readonly waiter: Waiter;
  readonly from: number;
}

/** The waiters of one tenant in one lane that are not placed yet. */
interface Backlog {
  readonly tenant: TenantAccount;
  /** In reverse order: the next one is last. */
  readonly placed: ForecastWaiter[];
  /** The tenant's service when the backlog was last sorted. Service only grows. */
  service: number;
}

function playForward(
  state: GroupState,
  waiters: readonly Waiter[],
  charged: Map<TenantAccount, number>,
  laneCredit: Record<Lane, number>,
): Waiter[] {
  const inLane = (lane: Lane) => {
    const serviceOf = (tenant: TenantAccount) =>
      tenant.shares[lane].service + (charged.get(tenant) ?? 0);
    return new LaneBacklogs(backlogsOf(state, waiters, lane, serviceOf), serviceOf);
  };
  const lanes = { high: inLane('high'), normal: inLane('normal'), low: inLane('low') };
  const order: Waiter[] = [];
  for (;;) {
    const turns = laneTurns({ laneCredit });
    const lane = LANES.filter((each) => lanes[each].length > 0).toSorted(
      (a, b) => turns[a] - turns[b],
    )[0];
    const waiter = lane === undefined ? undefined : lanes[lane].take();
    if (lane === undefined || waiter === undefined) return order;
    order.push(waiter);
    noteLaneGrant({ laneCredit, queue: { lanes }, settings: state.settings }, lane);
    const { tenant } = waiter;
    const cost =
      (holdToChargeMs(state) * waiter.ticket.slots) / weightOf(state.settings, tenant.key);
    charged.set(tenant, (charged.get(tenant) ?? 0) + cost);
  }
}

/** The backlogs of one lane in reverse order: the next one is last. */
class LaneBacklogs {
  readonly #backlogs: Backlog[];
  readonly #serviceOf: (tenant: TenantAccount) => number;

  constructor(backlogs: Backlog[], serviceOf: (tenant: TenantAccount) => number) {
    this.#backlogs = backlogs.toSorted((a, b) => compareBacklogs(b, a));
    this.#serviceOf = serviceOf;
  }

  get length(): number {
    return this.#backlogs.length;
  }

  take(): Waiter | undefined {
    for (;;) {
      const next = this.#backlogs.pop();
      if (next === undefined) return undefined;
      const service = this.#serviceOf(next.tenant);
      if (service > next.service) {
        // The tenant was served meanwhile, here or in another lane, so it may now come after others.
        next.service = service;
        this.#insert(next);
        continue;
      }
      const first = next.placed.pop();
      if (next.placed.length > 0) this.#insert(next);
      return first?.waiter;
    }
  }

  #insert(backlog: Backlog): void {
    const place = placeOf(this.#backlogs, backlog, (a, b) => compareBacklogs(b, a));
    this.#backlogs.splice(place, 0, backlog);
  }
}

function compareBacklogs(a: Backlog, b: Backlog): number {
  if (a.service !== b.service) return a.service - b.service;
  const [one, two] = [a.placed.at(-1), b.placed.at(-1)];
  return one === undefined || two === undefined ? 0 : comparePlaced(one, two);
}

function comparePlaced(a: ForecastWaiter, b: ForecastWaiter): number {
  return a.from - b.from || compareWaiters(a.waiter, b.waiter);
}

function backlogsOf(
  state: GroupState,
  waiters: readonly Waiter[],
  lane: Lane,
  serviceOf: (tenant: TenantAccount) => number,
): Backlog[] {
  const byTenant = Map.groupBy(
    waiters.filter((waiter) => waiter.lane === lane),
    (waiter) => waiter.tenant,
  );
  return [...byTenant].map(([tenant, own]) => {
    const placed = withForecastService(state, own.toSorted(compareWaiters)).toSorted(comparePlaced);
    return { tenant, placed: placed.toReversed(), service: serviceOf(tenant) };
  });
}

/** Pairs each waiter with the service that its agent will have by then. 0 if agents do not share. */
function withForecastService(state: GroupState, oldestFirst: readonly Waiter[]): ForecastWaiter[] {
  if (!state.settings.byAgent) return oldestFirst.map((waiter) => ({ waiter, from: 0 }));
  const service = new Map<Waiter['agent'], number>();
  return oldestFirst.map((waiter) => {
    const { agent, ticket } = waiter;
    const from = service.get(agent) ?? agent.service;
    service.set(agent, from + holdToChargeMs(state) * ticket.slots);
    return { waiter, from };
  });
}

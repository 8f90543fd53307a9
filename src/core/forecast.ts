import { LANES, type Lane } from './words/ticket.ts';
import { weightOf, type TenantAccount } from './parts/accounts.ts';
import { laneTurns, noteLaneGrant } from './parts/lanes.ts';
import { compareWaiters, placeOf, type Waiter } from './parts/queue.ts';
import { holdToChargeMs } from './estimate.ts';
import type { GroupState } from './state.ts';

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

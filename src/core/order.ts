import type { InstantMs } from './words/ids.ts';
import type { GroupSettings } from './words/settings.ts';
import { LANES, type Lane, type Ticket } from './words/ticket.ts';
import {
  catchUpHeld,
  isNamedAgent,
  leastAgentService,
  laneTurns,
  type Account,
  type TenantAccount,
} from './parts/accounts.ts';
import {
  isPassedOver,
  compareWaiters,
  placeOf,
  resettleAll,
  type Line,
  type Waiter,
} from './parts/queue.ts';
import { estimateWaitMs, isStalled } from './estimate.ts';
import { notExcluded, type GroupState } from './state.ts';
import { isHeldBackEverywhere, repeatRefusalsOf } from './placing.ts';
import { fullScopes, scopesHolding } from './capacity.ts';
import type { ScopeLimiter } from './member.ts';
import { findScope } from './scopes.ts';

/**
 * The scheduling order. `precedes` is the whole comparator. The other functions here find the waiters to compare.
 * `design/order.md` explains the order with a worked example.
 */

/** A cap that can stop one waiter while others start: its tenant, its agent, or a scope at a member. */
type Cap = Account | 'elsewhere' | ScopeLimiter;

/** The state that the order depends on, except the waiters themselves. */
interface OrderView {
  readonly state: GroupState;
  /** 0 for a lane that is owed a turn, then by priority. */
  readonly turns: Readonly<Record<Lane, number>>;
  /** Caps and scopes that stop the first waiter. They also stop the waiters behind it that they apply to. */
  readonly barred: Set<Cap>;
  readonly full: ReadonlySet<Cap>;
  readonly now: InstantMs;
  /** Maximum number of refusals of a candidate. A call that was refused more often lets other calls go first. */
  readonly refusalsMax: number;
  /** Waiters that count as if they were not queued. */
  readonly passedOver: ReadonlySet<Waiter>;
}

function precedes(a: Waiter, b: Waiter, { state, turns }: OrderView): boolean {
  if (a.isPromoted !== b.isPromoted) return a.isPromoted;
  const isReserved = hasReserve(state, a);
  if (isReserved !== hasReserve(state, b)) return isReserved;
  if (turns[a.lane] !== turns[b.lane]) return turns[a.lane] < turns[b.lane];
  const [one, two] = [serviceOf(a), serviceOf(b)];
  if (one !== two) return one < two;
  const { byAgent } = state.settings;
  if (byAgent && a.agent.service !== b.agent.service) return a.agent.service < b.agent.service;
  return compareWaiters(a, b) < 0;
}

/** The count of the waiter's lane is comparable here, because no two lanes have the same turn. */
function serviceOf({ tenant, lane }: Pick<Waiter, 'tenant' | 'lane'>): number {
  return tenant.shares[lane].service;
}

/**
 * Returns the age of a ticket in the line of its tenant: the start of its agent run, but at most the age credit before
 * its arrival. So a long run delays other calls by the credit at most. With a null credit the start of the run decides,
 * and with 0 the arrival does.
 */
export function ageOf(
  ticket: Ticket,
  agentStartedAt: InstantMs,
  { ageCreditMs }: GroupSettings,
): InstantMs {
  const earliest = ageCreditMs === null ? -Infinity : ticket.enqueuedAt - ageCreditMs;
  return Math.min(ticket.enqueuedAt, Math.max(agentStartedAt, earliest)) as InstantMs;
}

/** A call that was refused once for concurrency keeps its place. */
const REFUSALS_FREE = 1;

const NO_WAITERS: ReadonlySet<Waiter> = new Set();
const NONE_FULL: ReadonlySet<Cap> = new Set();

/**
 * Returns the next waiter, whether or not the group has room for it. undefined if no waiter is ready.
 *
 * @param passedOver these count as if they were not queued
 */
export function nextWaiter(
  state: GroupState,
  now: InstantMs,
  passedOver = NO_WAITERS,
): Waiter | undefined {
  const turns = laneTurns(state);
  const full = fullScopes(state, now);
  for (let refusalsMax = REFUSALS_FREE; ; refusalsMax += 1) {
    const best = nextOf({ state, turns, barred: new Set(), full, now, refusalsMax, passedOver });
    if (best !== undefined || refusalsMax >= state.repeatRefusals.refusalsMax) return best;
  }
}

function nextOf(view: OrderView): Waiter | undefined {
  for (;;) {
    const best = bestOf(candidates(view), view);
    if (best === undefined) return best;
    const cap = fullCap(view.state, best);
    const caps = cap === undefined ? scopesHolding(view.state, best, view.now) : [cap];
    if (caps.length === 0) return best;
    for (const each of caps) view.barred.add(each);
  }
}

function bestOf(waiters: Iterable<Waiter>, view: OrderView): Waiter | undefined {
  let best: Waiter | undefined;
  for (const waiter of waiters) {
    if (best === undefined || precedes(waiter, best, view)) best = waiter;
  }
  return best;
}

/**
 * Lists the waiters that could be next: the first of each lane, promoted waiters, and those of tenants with a
 * reservation.
 */
function candidates(view: OrderView): Waiter[] {
  const { queue, settings, accounts } = view.state;
  const found: (Waiter | undefined)[] = [...queue.promoted].filter((each) => mayGo(each, view));
  const reserved = Object.keys(settings.reserved).map((key) => accounts.tenants.get(key));
  for (const lane of LANES) {
    const { lines, byTenant } = queue.lanes[lane];
    found.push(bestOfLane(lines, view));
    for (const tenant of reserved) {
      const line = tenant === undefined ? undefined : byTenant.get(tenant);
      if (line !== undefined) found.push(headOf(line, view));
    }
  }
  return found.filter((waiter) => waiter !== undefined);
}

/** The lines are sorted, so the search ends at the first line that cannot precede the best waiter found. */
function bestOfLane(lines: readonly Line[], view: OrderView): Waiter | undefined {
  let best: Waiter | undefined;
  for (const line of lines) {
    if (best !== undefined && !mayPrecede(line, best, view)) break;
    const head = headOf(line, view);
    if (head !== undefined && (best === undefined || precedes(head, best, view))) best = head;
  }
  return best;
}

/** Whether a waiter of this line or of a later one could go before `best`. */
function mayPrecede(line: Line, best: Waiter, view: OrderView): boolean {
  // With fair agents, the first waiter of a line is not always the one that goes first.
  if (view.state.settings.byAgent) return serviceOf(line) <= serviceOf(best);
  const [oldest] = line.waiters;
  return oldest !== undefined && precedes(oldest, best, view);
}

/** Returns the first waiter of a line: the oldest, or the oldest of the agent with the least service. */
function headOf({ tenant, waiters }: Line, view: OrderView): Waiter | undefined {
  const { byAgent, slotsMaxEach } = view.state.settings;
  if (isFull(tenant, slotsMaxEach, view)) return undefined;
  if (!byAgent) return waiters.find((waiter) => mayGo(waiter, view));
  const least = leastAgentService(tenant);
  let best: Waiter | undefined;
  for (const waiter of waiters) {
    if (best !== undefined && best.agent.service <= waiter.agent.service) continue;
    if (mayGo(waiter, view)) best = waiter;
    if (best !== undefined && best.agent.service <= least) break;
  }
  return best;
}

/** Whether a waiter is parked and nothing of its own holds it. Otherwise it blocks no other waiter. */
function mayGo(waiter: Waiter, view: OrderView): boolean {
  return waiter.sliceEndsAt !== null && !view.passedOver.has(waiter) && isReady(waiter, view);
}

/** Whether its own caps have room, and no refusal of its own makes it let other calls go first. */
function isReady({ ticket, tenant, agent }: Waiter, view: OrderView): boolean {
  if (repeatRefusalsOf(view.state, ticket) > view.refusalsMax) return false;
  const { slotsMaxEach, slotsMaxEachAgent } = view.state.settings;
  if (isFull(tenant, slotsMaxEach, view)) return false;
  if (isNamedAgent(agent) && isFull(agent, slotsMaxEachAgent, view)) return false;
  if (isHeldBackEverywhere(view.state, ticket) || isInBarredScopes(ticket, view)) return false;
  if (isPassedOver(view.state.passedOver, ticket, view.now)) return false;
  if (!ticket.waitsElsewhere) return true;
  return !view.barred.has('elsewhere') && !wouldProbeTooMuch(view.state);
}

/** Whether, at each member that the ticket may use, a full scope or a scope of an earlier waiter stops it. */
function isInBarredScopes(ticket: Ticket, { state, barred, full }: OrderView): boolean {
  return isInSome(state, ticket, full) || isInSome(state, ticket, barred);
}

/**
 * Levels lines and agents whose waiters are all held by scopes, when a tenant is granted a slot. They count as idle.
 * Otherwise they would take every slot once the hold ends, and new waiters would start level with them.
 */
export function levelHeld(state: GroupState, granted: TenantAccount, now: InstantMs): void {
  const full = fullScopes(state, now);
  if (full.size === 0) return;
  const { queue, accounts, settings } = state;
  const isHeld = ({ ticket }: Waiter): boolean => isInSome(state, ticket, full);
  for (const lane of LANES) {
    const { lines } = queue.lanes[lane];
    const [held, free] = split(lines, ({ waiters }) => waiters.every(isHeld));
    const level = free[0]?.tenant.shares[lane].service ?? accounts.lastService[lane];
    const shares = held.map(({ tenant }) => tenant.shares[lane]);
    if (catchUpHeld(shares, level)) resettleAll(queue.lanes[lane]);
  }
  if (!settings.byAgent) return;
  const waiters = LANES.flatMap((lane) => queue.lanes[lane].byTenant.get(granted)?.waiters ?? []);
  const going = new Set(waiters.filter((each) => !isHeld(each)).map(({ agent }) => agent));
  const [free, held] = split([...granted.waitingAgents], (agent) => going.has(agent));
  const least = free.reduce((low, { service }) => Math.min(low, service), Infinity);
  catchUpHeld(held, least === Infinity ? granted.lastAgentService : least);
}

/** Splits items into those that match and the others, in order. */
function split<Item>(
  items: readonly Item[],
  matches: (item: Item) => boolean,
): readonly [Item[], Item[]] {
  const [matching, rest]: [Item[], Item[]] = [[], []];
  for (const item of items) (matches(item) ? matching : rest).push(item);
  return [matching, rest];
}

function isInSome(state: GroupState, ticket: Ticket, scopes: ReadonlySet<Cap>): boolean {
  if (scopes.size === 0) return false;
  for (const member of notExcluded(state, ticket)) {
    if (findScope(member, ticket.holder, (one) => scopes.has(one)) === null) return false;
  }
  return true;
}

/**
 * Whether at least `enough` waiters go before this one, whatever happens meanwhile. These are the older waiters of its
 * own turns, and the next one of each other line that precedes it. After that, its own turn may come.
 */
export function areSurelyAhead(
  state: GroupState,
  waiter: Waiter,
  enough: number,
  now: InstantMs,
): boolean {
  if (waiter.isPromoted) return false;
  const full = fullAheadOf(state, waiter, now);
  let ahead = countOlder(state, waiter, full);
  if (ahead >= enough) return true;
  const turns = laneTurns(state);
  const view: OrderView = {
    state,
    turns,
    barred: new Set(),
    full,
    now,
    refusalsMax: REFUSALS_FREE,
    passedOver: NO_WAITERS,
  };
  for (const other of others(state, waiter)) {
    if (precedes(other, waiter, view) && isReady(other, view)) ahead += 1;
    if (ahead >= enough) return true;
  }
  return false;
}

/** Counts the older waiters that share its turns. */
function countOlder(state: GroupState, waiter: Waiter, full: ReadonlySet<Cap>): number {
  const { queue, settings } = state;
  const { waiters = [] } = queue.lanes[waiter.lane].byTenant.get(waiter.tenant) ?? {};
  const place = placeOf(waiters, waiter, compareWaiters);
  const areAllOfAgent = !settings.byAgent || waiter.agent.waiting === waiter.tenant.waiting;
  if (areAllOfAgent && full.size === 0) return place;
  return waiters
    .slice(0, place)
    .filter(({ agent }) => areAllOfAgent || agent === waiter.agent)
    .filter(({ ticket }) => !isInSome(state, ticket, full)).length;
}

/** Returns the scopes that hold calls ahead of a waiter. Empty if they hold this waiter too. */
function fullAheadOf(state: GroupState, { ticket }: Waiter, now: InstantMs): ReadonlySet<Cap> {
  const full = fullScopes(state, now);
  return isInSome(state, ticket, full) ? NONE_FULL : full;
}

/**
 * Estimates how many waiters start before this one:
 *
 * - all of higher lanes
 * - the older ones of its tenant
 * - of each other tenant in its lane, as many as bring that tenant level
 *
 * Held and passed-over waiters do not count.
 */
export function turnsAhead(state: GroupState, waiter: Waiter, now: InstantMs): number {
  if (waiter.isPromoted) return 0;
  const { queue, passedOver, holdMeanMs } = state;
  const full = fullAheadOf(state, waiter, now);
  const doAllCount = full.size === 0 && passedOver.size === 0;
  const count = (waiters: readonly Waiter[]): number => {
    if (doAllCount) return waiters.length;
    const those = waiters.filter(({ ticket }) => {
      return !isInSome(state, ticket, full) && !isPassedOver(passedOver, ticket, now);
    });
    return those.length;
  };
  let ahead = 0;
  for (const lane of LANES.slice(0, LANES.indexOf(waiter.lane))) {
    for (const { waiters } of queue.lanes[lane].lines) ahead += count(waiters);
  }
  const { lines, byTenant } = queue.lanes[waiter.lane];
  const { waiters: line = [] } = byTenant.get(waiter.tenant) ?? {};
  const own = count(line.slice(0, placeOf(line, waiter, compareWaiters)));
  for (const { tenant, lane, waiters } of lines) {
    if (tenant === waiter.tenant) continue;
    const behindMs = serviceOf(waiter) - serviceOf({ tenant, lane });
    const turns = Math.floor(own + 1 + behindMs / Math.max(1, holdMeanMs));
    if (turns > 0) ahead += Math.min(turns, count(waiters));
  }
  return ahead + own;
}

/**
 * Estimates how long a waiter will wait, in milliseconds. null in these cases:
 *
 * - No call has ended yet, or none for a long time.
 * - The waiter is held by its own cap or scope, whose ends are not counted.
 */
export function expectedWaitMs(state: GroupState, waiter: Waiter, now: InstantMs): number | null {
  if (state.lastEndAt === -Infinity || isStalled(state, now)) return null;
  if (!isUnderCap(state, waiter) || scopesHolding(state, waiter, now).length > 0) return null;
  return estimateWaitMs(state, turnsAhead(state, waiter, now), now);
}

/** Lists the oldest waiter of each other line, and of each other agent in its own line. */
function* others(
  { queue, settings }: GroupState,
  { lane, tenant, agent }: Waiter,
): Generator<Waiter> {
  for (const each of LANES) {
    for (const line of queue.lanes[each].lines) {
      const isOwn = each === lane && line.tenant === tenant;
      if (!isOwn) yield* line.waiters.slice(0, 1);
      else if (settings.byAgent) yield* oldestOfEach(line, agent);
    }
  }
}

function* oldestOfEach({ waiters }: Line, except: Account): Generator<Waiter> {
  const seen = new Set([except]);
  for (const waiter of waiters) {
    if (seen.has(waiter.agent)) continue;
    seen.add(waiter.agent);
    yield waiter;
  }
}

function isFull(account: Account, slotsMax: number, { barred }: OrderView): boolean {
  return account.slots >= slotsMax || barred.has(account);
}

function fullCap(
  state: GroupState,
  { ticket, tenant, agent }: Waiter,
): Account | 'elsewhere' | undefined {
  const { slotsMaxEach, slotsMaxEachAgent } = state.settings;
  const { slots, waitsElsewhere } = ticket;
  if (tenant.slots + slots > slotsMaxEach) return tenant;
  if (isNamedAgent(agent) && agent.slots + slots > slotsMaxEachAgent) return agent;
  return waitsElsewhere && wouldProbeTooMuch(state) ? 'elsewhere' : undefined;
}

/**
 * While a breaker is not closed or a pause is probed, only one call that waits in another group may hold slots. Such
 * calls take their permits when they are sent, perhaps all together.
 */
function wouldProbeTooMuch({ slotsWaitingElsewhere, serving }: GroupState): boolean {
  if (slotsWaitingElsewhere === 0) return false;
  return serving.some(
    ({ controls: { breaker, pause } }) => breaker.phase !== 'closed' || pause.waitMs > 0,
  );
}

/** Returns the cap that holds a waiter. null if there is none. */
export function capOf(state: GroupState, waiter: Waiter): 'tenant' | 'agent' | 'probe' | null {
  const cap = fullCap(state, waiter);
  if (cap === undefined) return null;
  if (cap === 'elsewhere') return 'probe';
  return cap === waiter.tenant ? 'tenant' : 'agent';
}

/** Whether no cap holds a waiter, neither its own nor the one on calls that wait elsewhere. */
export function isUnderCap(state: GroupState, waiter: Waiter): boolean {
  return fullCap(state, waiter) === undefined;
}

function hasReserve({ settings, slotsByLane }: GroupState, { tenant, lane }: Waiter): boolean {
  const { reserved, reservedLanes } = settings;
  const ofTenant = Object.hasOwn(reserved, tenant.key) ? reserved[tenant.key] : undefined;
  if (ofTenant !== undefined && tenant.slots < ofTenant) return true;
  const ofLane = reservedLanes[lane];
  return ofLane !== undefined && slotsByLane[lane] < ofLane;
}

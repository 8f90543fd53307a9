import type { InstantMs } from './words/ids.ts';
import type { GroupSettings } from './words/settings.ts';
import { LANES, type Lane, type Ticket } from './words/ticket.ts';
import {
  catchUpHeld,
  isNamedAgent,
  leastAgentService,
  type Account,
  type TenantAccount,
} from './parts/accounts.ts';
import { laneTurns } from './parts/lanes.ts';
import { isPassedOver } from './parts/pass-over.ts';
import { compareWaiters, placeOf, resettleAll, type Line, type Waiter } from './parts/queue.ts';
import { estimateWaitMs, isStalled } from './estimate.ts';
import { notExcluded } from './members.ts';
import { isHeldBackEverywhere, repeatRefusalsOf } from './placing.ts';
import { fullScopes, scopesHolding } from './scope-holds.ts';
import type { ScopeLimiter } from './limiter.ts';
import { findScope } from './scopes.ts';
import type { GroupState } from './state.ts';

/**
 * The order of turns. All of it is `precedes`; everything else here finds who may be compared.
 * `docs/order.md` explains it with a worked example.
 */

/** A cap that can stop one waiter while others start: its tenant, its agent, or a scope at a member. */
type Cap = Account | 'elsewhere' | ScopeLimiter;

/** Facts that the order depends on besides the waiters themselves. */
interface OrderView {
  readonly state: GroupState;
  /** 0 for a lane that is owed a turn, then by priority. */
  readonly turns: Readonly<Record<Lane, number>>;
  /** Caps and scopes that stop the first waiter. They also stop the waiters behind it that they apply to. */
  readonly barred: Set<Cap>;
  /** Full scopes. */
  readonly full: ReadonlySet<Cap>;
  readonly now: InstantMs;
  /** Maximum refusals of a call that is looked at: one refused more often lets others go first. */
  readonly refusalsMax: number;
  /** Waiters that are passed over, as if they did not wait. */
  readonly passedOver: ReadonlySet<Waiter>;
}

/** The comparator: whether `a` goes before `b`. */
function precedes(a: Waiter, b: Waiter, { state, turns }: OrderView): boolean {
  if (a.isPromoted !== b.isPromoted) return a.isPromoted;
  const isReserved = hasReserve(state, a);
  if (isReserved !== hasReserve(state, b)) return isReserved;
  if (turns[a.lane] !== turns[b.lane]) return turns[a.lane] < turns[b.lane];
  const [one, two] = [hadBy(a), hadBy(b)];
  if (one !== two) return one < two;
  const { byAgent } = state.settings;
  if (byAgent && a.agent.service !== b.agent.service) return a.agent.service < b.agent.service;
  return compareWaiters(a, b) < 0;
}

/** Reads the service of a waiter's tenant by the count of its lane: no two lanes have the same turn. */
function hadBy({ tenant, lane }: Pick<Waiter, 'tenant' | 'lane'>): number {
  return tenant.shares[lane].service;
}

/**
 * The place of a ticket among its tenant's: when its agent run began, but no longer before its arrival
 * than the age credit, so that a long run delays others by the credit at most. Null credit: strictly by
 * the run. 0: first come, first served.
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

const NO_ACTOR: ReadonlySet<Waiter> = new Set();
const NONE_FULL: ReadonlySet<Cap> = new Set();

/**
 * The waiter that goes next, whether the group has room for it or not; undefined: nobody is ready.
 *
 * @param passedOver as if these did not wait
 */
export function nextWaiter(
  state: GroupState,
  now: InstantMs,
  passedOver = NO_ACTOR,
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

/** Lists all who could be next: the best of each lane, and those who may go before it. */
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

/** Looks at the lines in their order, until none that follows can be better than what was found. */
function bestOfLane(lines: readonly Line[], view: OrderView): Waiter | undefined {
  let best: Waiter | undefined;
  for (const line of lines) {
    if (best !== undefined && !mayPrecede(line, best, view)) break;
    const head = headOf(line, view);
    if (head !== undefined && (best === undefined || precedes(head, best, view))) best = head;
  }
  return best;
}

/** Whether somebody of a line, or of one behind it, could go before `best`. */
function mayPrecede(line: Line, best: Waiter, view: OrderView): boolean {
  // The oldest of an agent that has had more stands behind younger ones of other agents.
  if (view.state.settings.byAgent) return hadBy(line) <= hadBy(best);
  const [oldest] = line.waiters;
  return oldest !== undefined && precedes(oldest, best, view);
}

/** The waiter of a line that goes first: the oldest, or the oldest of the agent that has had least. */
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

/** Whether somebody is parked behind a waiter and nothing of its own keeps it back. It blocks nobody if so. */
function mayGo(waiter: Waiter, view: OrderView): boolean {
  return waiter.sliceEndsAt !== null && !view.passedOver.has(waiter) && isReady(waiter, view);
}

/** Whether no cap of its own is used up, nor a refusal of its own lets others go first. */
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

/**
 * Whether a full scope stops a ticket at each member that it may go to, or a scope holds a waiter ahead of it at each.
 */
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
 * Whether as many waiters as `enough` go before this one whatever happens meanwhile: the older ones that share its
 * turns, and of everybody else who goes first now the next one only, since the turn after that may be its own.
 */
export function areSurelyAhead(
  state: GroupState,
  waiter: Waiter,
  enough: number,
  now: InstantMs,
): boolean {
  if (waiter.isPromoted) return false;
  const full = fullAheadOf(state, waiter, now);
  let ahead = eldersOf(state, waiter, full);
  if (ahead >= enough) return true;
  const turns = laneTurns(state);
  const view: OrderView = {
    state,
    turns,
    barred: new Set(),
    full,
    now,
    refusalsMax: REFUSALS_FREE,
    passedOver: NO_ACTOR,
  };
  for (const other of others(state, waiter)) {
    if (precedes(other, waiter, view) && isReady(other, view)) ahead += 1;
    if (ahead >= enough) return true;
  }
  return false;
}

/** Counts those who share the turns of a waiter and stand before it. */
function eldersOf(state: GroupState, waiter: Waiter, full: ReadonlySet<Cap>): number {
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

/** Finds the scopes that hold calls ahead of a waiter. Empty if they hold this waiter too. */
function fullAheadOf(state: GroupState, { ticket }: Waiter, now: InstantMs): ReadonlySet<Cap> {
  const full = fullScopes(state, now);
  return isInSome(state, ticket, full) ? NONE_FULL : full;
}

/**
 * Estimates how many waiters start before this one: those of higher lanes, those of its own tenant that stand before it, and of
 * every other tenant in its lane as many as bring that tenant level with its own. Those that are held or passed over do not
 * count.
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
    const behindMs = hadBy(waiter) - hadBy({ tenant, lane });
    const turns = Math.floor(own + 1 + behindMs / Math.max(1, holdMeanMs));
    if (turns > 0) ahead += Math.min(turns, count(waiters));
  }
  return ahead + own;
}

/**
 * Estimates how long a waiter will wait, in milliseconds. Null: no call has ended yet, or none for long, so nothing is known of
 * when the next one will, or it waits for calls under its own cap or in its scope, whose ends are not counted.
 */
export function expectedWaitMs(state: GroupState, waiter: Waiter, now: InstantMs): number | null {
  if (state.lastEndAt === -Infinity || isStalled(state, now)) return null;
  if (!isUnderCap(state, waiter) || scopesHolding(state, waiter, now).length > 0) return null;
  return estimateWaitMs(state, turnsAhead(state, waiter, now), now);
}

/** Lists the oldest of every other line, and of every other agent in its own. */
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

/** The cap under which a waiter has no room, because it wants more slots than are left there. */
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
 * Only one call that waits in another group may hold slots while a breaker is not closed or a pause is probed: such calls
 * take their permits when they are sent, perhaps all at once.
 */
function wouldProbeTooMuch({ slotsWaitingElsewhere, serving }: GroupState): boolean {
  if (slotsWaitingElsewhere === 0) return false;
  return serving.some(
    ({ controls: { breaker, pause } }) => breaker.phase !== 'closed' || pause.waitMs > 0,
  );
}

/** Names the cap that keeps a waiter from its slots. Null: none does. */
export function capOf(state: GroupState, waiter: Waiter): 'tenant' | 'agent' | 'probe' | null {
  const cap = fullCap(state, waiter);
  if (cap === undefined) return null;
  if (cap === 'elsewhere') return 'probe';
  return cap === waiter.tenant ? 'tenant' : 'agent';
}

/** Whether no cap of its own, and none of calls that wait elsewhere, keeps a waiter from its slots. */
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

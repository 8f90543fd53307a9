import { GAUGES } from '../../contract/gauges.ts';
import type {
  LeaseInfo,
  PoolStatus,
  WaiterInfo,
  RateStatus,
  UpstreamCallsStatus,
} from '../../contract/status.ts';
import { DETAIL_ROWS_MAX, type PoolDetail } from '../../contract/rpc/feed-rpc.ts';
import { IMPLICIT, type InstantMs } from '../../core/words/ids.ts';
import { cooldownInForceMs, heldByCalls, blockOf, isHeldByRates } from '../../core/capacity.ts';
import { probableOrder, outlookOf, stalledMs, waitReason } from '../../core/outlook.ts';
import { laneLength, queueLength, type Waiter } from '../../core/parts/queue.ts';
import { waitsFor } from '../../core/placing.ts';
import { capOf } from '../../core/order.ts';
import { isSplit, type GroupState } from '../../core/state.ts';
import { periodBegin, PERIODS, spentIn, type Period } from '../../core/parts/spend.ts';
import type { BudgetSettings } from '../../core/words/settings.ts';
import { rateStatuses } from '../../routing/group-limits.ts';
import { memberIdOf } from '../../contract/config/members.ts';
import type { UpstreamCallCounts } from '../../core/parts/totals.ts';
import type { CallerCalls } from '../../contract/rpc/group-rpc.ts';
import type { Definition, PoolIdentity } from '../definition.ts';
import { counterReader, limitStatus, membersStatus } from './limit-status.ts';
import { scopesStatus, shownScope } from './scope-status.ts';

/** The status of a pool, its parts about stops and upstreams, and its view for callers. */

const readCounters = counterReader(GAUGES);

interface ShellFigures extends Pick<
  PoolStatus,
  'wait_p50_ms' | 'wait_p95_ms' | 'last_hour' | 'lately'
> {
  readonly passedUnlimited: number;
  readonly passedUnlimitedAt: InstantMs | null;
  readonly idleMs: number;
}

export function poolStatus(
  identity: PoolIdentity,
  definition: Definition,
  state: GroupState,
  { passedUnlimited, passedUnlimitedAt: passedAt, idleMs, ...waits }: ShellFigures,
  now: InstantMs,
): PoolStatus {
  let oldest: number = now;
  for (const { ticket } of state.queue.byTicket.values()) {
    oldest = Math.min(oldest, ticket.enqueuedAt);
  }
  const { queue, settings, totals, unclaimed: orphaned, lending } = state;
  return {
    ...identity,
    in_use: heldByCalls(state),
    cooling: state.slotsCooling,
    cooldown_ms: Math.round(cooldownInForceMs(state)),
    unclaimed: orphaned.slots,
    unclaimed_until: orphaned.slots === 0 ? null : new Date(orphaned.until).toISOString(),
    lent: lending.idle,
    queued: queueLength(queue),
    queued_by_lane: {
      high: laneLength(queue, 'high'),
      normal: laneLength(queue, 'normal'),
      low: laneLength(queue, 'low'),
    },
    ...waitReasons(state, now),
    stalled_ms: stalledMs(state, now),
    oldest_wait_ms: Math.round(now - oldest),
    ...waits,
    paused: settings.paused,
    ...limitStatus(definition, state, now),
    ...scopesStatus(state, now),
    draining: settings.isDraining,
    dry_run: settings.isDryRun,
    ...readCounters(totals),
    passed_unlimited_total: passedUnlimited,
    ...(passedAt !== null && { passed_unlimited_at: new Date(passedAt).toISOString() }),
    ...membersStatus(definition, state, now),
    ...upstreamsStatus(definition, state, now),
    ...stopsOf(state, now),
    idle_ms: idleMs,
  };
}

/** Maximum waiters whose wait reasons are counted. Each takes a microsecond, and dashboards ask every second. */
const REASONS_COUNTED_MAX = 2_000;

function waitReasons(
  state: GroupState,
  now: InstantMs,
): Pick<PoolStatus, 'waiting_for' | 'needed_elsewhere'> {
  if (queueLength(state.queue) === 0) return {};
  const causes: Record<string, number> = {};
  const needed: Record<string, number> = {};
  let counted = 0;
  for (const waiter of state.queue.byTicket.values()) {
    if (counted < REASONS_COUNTED_MAX) {
      const { cause } = waitReason(state, waiter, now);
      causes[cause] = (causes[cause] ?? 0) + 1;
      counted += 1;
    }
    for (const pool of waiter.ticket.needs ?? []) needed[pool] = (needed[pool] ?? 0) + 1;
  }
  const isNeeded = Object.keys(needed).length > 0;
  return { waiting_for: causes, ...(isNeeded && { needed_elsewhere: needed }) };
}

/** Lists at most `most` leases of one pool, oldest first. */
export function leaseInfos(state: GroupState, now: InstantMs, most = Infinity): LeaseInfo[] {
  return [...state.leases.values()]
    .toSorted((a, b) => a.grantedAt - b.grantedAt)
    .slice(0, most)
    .map(({ holder: { tenant, agent, caller, upstream, model, kind }, ...lease }) => ({
      id: lease.id,
      ...(kind === undefined ? {} : { kind }),
      tenant,
      agent,
      caller,
      upstream,
      ...(lease.member === IMPLICIT ? {} : { member: lease.member }),
      model,
      lane: lease.lane,
      slots: lease.slots,
      granted_at: new Date(lease.grantedAt).toISOString(),
      age_ms: now - lease.grantedAt,
      expires_at: new Date(lease.until).toISOString(),
      state: lease.phase,
    }));
}

/** Lists at most `most` waiters of one pool, in the order in which they will probably be granted. */
export function waiterInfos(state: GroupState, now: InstantMs, most = Infinity): WaiterInfo[] {
  const first = probableOrder(state).slice(0, most);
  return first.map((waiter, position) => {
    const { ticket, lane, isPromoted } = waiter;
    const { estimateMs, cause, scope } = outlookOf(state, waiter, position, now);
    const { needs = [] } = ticket;
    const cap = cause === 'cap' ? capOf(state, waiter) : null;
    const { tenant, agent, upstream, model, kind } = ticket.holder;
    return {
      ticket: ticket.id,
      ...(kind === undefined ? {} : { kind }),
      lane,
      tenant,
      agent,
      upstream,
      model,
      slots: ticket.slots,
      waited_ms: Math.max(0, Math.round(now - ticket.enqueuedAt)),
      position,
      estimate_ms: estimateMs,
      waits_for: cause,
      ...(scope !== undefined && { scope: shownScope(scope) }),
      ...(cap !== null && { cap }),
      ...(needs.length > 0 && { needs: [...needs] }),
      promoted: isPromoted,
      ...membersOf(state, waiter, now),
    };
  });
}

/** Returns the members that a waiter excludes, and the one for which it waits. */
function membersOf(
  state: GroupState,
  waiter: Waiter,
  now: InstantMs,
): Pick<WaiterInfo, 'excluded_members' | 'waits_for_member'> {
  const { excluded = [] } = waiter.ticket;
  const own = waitsFor(state, waiter, now);
  return {
    ...(excluded.length === 0 ? {} : { excluded_members: excluded }),
    ...(own === null ? {} : { waits_for_member: own.id }),
  };
}

/** Lists the first leases and waiters of one pool, for a reader of its details. */
export function poolDetail(state: GroupState, now: InstantMs): PoolDetail {
  return {
    leases: leaseInfos(state, now, DETAIL_ROWS_MAX),
    waiters: waiterInfos(state, now, DETAIL_ROWS_MAX),
    leasesTotal: state.leases.size,
    waitersTotal: queueLength(state.queue),
  };
}

/** Returns the limits other than slots that keep calls out of a pool. */
function stopsOf(
  state: GroupState,
  now: InstantMs,
): Pick<PoolStatus, 'budget_spent' | 'rate_used_up'> {
  return { budget_spent: budgetSpent(state, now), rate_used_up: rateUsedUp(state, now) };
}

/**
 * Returns the budget that is spent or had no room for the last call. It applies until its period ends, or until the
 * budget is raised or removed.
 */
export function budgetSpent(state: GroupState, now: InstantMs): PoolStatus['budget_spent'] {
  const { settings, controls, budgetStop: stop } = state;
  const { spend } = controls;
  const limits = limitsUsd(settings.budgets);
  const spent = PERIODS.findLast((period) => {
    const limit = limits[period];
    return limit !== null && spentIn(spend.total, period, now) >= limit;
  });
  if (spent !== undefined) return { window: spent, limit_usd: limits[spent] ?? 0 };
  if (stop === null || periodBegin(stop.window, now) > stop.at) return null;
  // It may be the budget of a member.
  const holders = isSplit(state) ? [state, ...state.serving] : [state];
  const isInForce = holders.some(({ settings: { budgets } }) => {
    const limit = limitsUsd(budgets)[stop.window];
    return limit !== null && limit <= stop.limitUsd;
  });
  return isInForce ? { window: stop.window, limit_usd: stop.limitUsd } : null;
}

function limitsUsd(budgets: BudgetSettings): Readonly<Record<Period, number | null>> {
  return { hour: budgets.perHourUsd, day: budgets.perDayUsd, month: budgets.perMonthUsd };
}

/**
 * Returns the rate limit with nothing left. If the next waiter waits only for time, returns the one with the least
 * left.
 */
function rateUsedUp(state: GroupState, now: InstantMs): string | null {
  const ledgers = isSplit(state) ? [state, ...state.serving] : [state];
  const rates = ledgers.flatMap(({ controls, settings }) =>
    Object.entries(rateStatuses(controls.rates, settings.rates, now)),
  );
  const [least] = rates.toSorted(([, a], [, b]) => partOf(a) - partOf(b));
  if (least === undefined || blockOf(state.serving, now) !== null) return null;
  const isWaitedFor = queueLength(state.queue) > 0 && isHeldByRates(state) && partOf(least[1]) < 1;
  const ofAll = isSplit(state)
    ? Object.entries(rateStatuses(state.controls.rates, state.settings.rates, now))
    : rates;
  return isWaitedFor ? least[0] : (ofAll.find(([, { left }]) => left < 1)?.[0] ?? null);
}

function partOf({ limit, left }: RateStatus): number {
  return limit <= 0 ? 0 : left / limit;
}

/** Returns the calls to each upstream. Several members of one upstream are shown in the status of members. */
function upstreamsStatus(
  { config }: Definition,
  state: GroupState,
  now: InstantMs,
): Pick<PoolStatus, 'upstreams'> {
  const inFlight = new Map<string, number>();
  for (const { phase, member, holder } of state.leases.values()) {
    if (phase === 'cooling') continue;
    const place = isSplit(state) ? member : holder.upstream;
    inFlight.set(place, (inFlight.get(place) ?? 0) + 1);
  }
  const ofMembers = new Map(
    (config?.members ?? []).map((each) => [String(memberIdOf(each)), each.upstream]),
  );
  const places = new Set([...state.upstreams.keys(), ...inFlight.keys()]);
  return {
    upstreams: [...places].map((place) => ({
      id: ofMembers.get(place) ?? place,
      in_flight: inFlight.get(place) ?? 0,
      ...reported(state.upstreams.get(place), now),
    })),
  };
}

type UpstreamReport = Omit<UpstreamCallsStatus, 'id' | 'in_flight'>;

function reported(there: UpstreamCallCounts | undefined, now: InstantMs): UpstreamReport {
  if (there === undefined) {
    const nothing = { day_granted: 0, day_refusals: {}, spend: null, last_refusals: [] };
    return { last_call_at: isoOf(now), ...nothing };
  }
  const { lastAt, day, granted, refused, spent, lastRefusals } = there;
  const isToday = day >= periodBegin('day', now);
  return {
    last_call_at: isoOf(lastAt),
    day_granted: isToday ? granted : 0,
    day_refusals: isToday ? { ...refused } : {},
    spend:
      spent.beganAt.month === 0
        ? null
        : { day_usd: spentIn(spent, 'day', now), month_usd: spentIn(spent, 'month', now) },
    last_refusals: Object.entries(lastRefusals).map(([kind, last]) => ({
      kind,
      at: isoOf(last.at),
      retry_after_ms: last.retryAfterMs,
      model: last.model,
      ...(last.status !== undefined && { status: last.status }),
      ...(last.words !== undefined && { message: last.words }),
    })),
  };
}

function isoOf(at: InstantMs): string {
  return new Date(at).toISOString();
}

/** Minimum interval at which the queue is sorted for callers, because they may ask at any rate. */
const ORDERED_EVERY_MS = 1_000;

/** Returns callers' own calls in a pool. */
export class CallerView {
  #orderedAt = -Infinity;
  #infos = new Map<string, WaiterInfo>();

  /** Returns the calls of one caller. Places in the queue may be a second old. */
  callsOf(caller: string, state: GroupState, now: InstantMs): Omit<CallerCalls, 'status'> {
    const held = [...state.leases.values()].filter(
      ({ holder, phase }) => holder.caller === caller && phase !== 'cooling',
    );
    const tickets = [...state.queue.byTicket.values()]
      .filter(({ ticket }) => ticket.holder.caller === caller)
      .map(({ ticket }) => ticket.id);
    return {
      in_flight: held.length,
      slots_in_use: held.reduce((slots, lease) => slots + lease.slots, 0),
      waiters: tickets.length === 0 ? [] : this.#waiters(tickets, state, now),
    };
  }

  #waiters(tickets: readonly string[], state: GroupState, now: InstantMs): WaiterInfo[] {
    const isOld = now - this.#orderedAt >= ORDERED_EVERY_MS;
    if (isOld || tickets.some((ticket) => !this.#infos.has(ticket))) {
      this.#infos = new Map(waiterInfos(state, now).map((info) => [info.ticket, info]));
      this.#orderedAt = now;
    }
    return tickets
      .flatMap((ticket) => this.#infos.get(ticket) ?? [])
      .toSorted((a, b) => a.position - b.position);
  }
}

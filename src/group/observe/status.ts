import { GAUGES } from '../../contract/gauges.ts';
import type { LeaseInfo, PoolStatus, WaiterInfo } from '../../contract/status.ts';
import { DETAIL_ROWS_MAX, type PoolDetail } from '../../contract/rpc/feed-rpc.ts';
import { IMPLICIT, type InstantMs } from '../../core/words/ids.ts';
import { cooldownInForceMs, heldByCalls } from '../../core/capacity.ts';
import { probableOrder } from '../../core/forecast.ts';
import { laneLength, queueLength, type Waiter } from '../../core/parts/queue.ts';
import { waitsFor } from '../../core/placing.ts';
import { capOf } from '../../core/order.ts';
import type { GroupState } from '../../core/state.ts';
import { outlookOf, stalledMs, waitReason } from '../../core/wait-reason.ts';
import type { Definition, PoolIdentity } from '../definition.ts';
import { counterReader } from './counters.ts';
import { limitStatus } from './limit-status.ts';
import { membersStatus } from './member-status.ts';
import { scopesStatus, shownScope } from './scope-status.ts';
import { stopsOf } from './stops.ts';
import { upstreamsStatus } from './upstream-status.ts';

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

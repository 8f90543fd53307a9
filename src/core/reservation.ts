import type { InstantMs, MemberId } from './words/ids.ts';
import type { RateSettings } from './words/settings.ts';
import type {
  Bill,
  CallEstimate,
  CallUsage,
  Demand,
  Reserved,
  Settlement,
} from './words/ticket.ts';
import {
  amountsOf,
  returnAhead,
  useAhead,
  demandAt,
  observeUsage,
  type Amounts,
} from './parts/demand.ts';
import { noteCost } from './parts/costs.ts';
import { limitsAdded, limitsOf } from './parts/rate-limits.ts';
import { refundDebts, refund as refundRates, settle as settleRates, take } from './parts/rates.ts';
import { refund as refundUsd, reserve as reserveUsd, settle as settleUsd } from './parts/spend.ts';
import type { Ledger, Member } from './member.ts';
import { ledgersOf, memberOf, type GroupState, type ActiveLease } from './state.ts';
import { hasWaitedFirst, noteModel, noteUsage } from './stats.ts';

interface EstimatedCall {
  readonly estimate: CallEstimate | null;
  readonly hasWaited: boolean;
}

const NOTHING = { requests: 0, inputTokens: 0, outputTokens: 0, usd: 0 };

/**
 * Reserves what a call needs from the rates and budgets of its member and of the group. null if there is nothing to
 * reserve.
 */
export function reserveFor(
  state: GroupState,
  member: Member,
  wanted: Demand,
  call: EstimatedCall,
  now: InstantMs,
): Reserved | null {
  const reserved = reservationOf(isMeteredAt(state, member.id), demandAt(wanted, member.id), call);
  if (reserved === null) return null;
  const { demand, usd } = reserved;
  for (const { controls, settings, ahead } of ledgersOf(state, member)) {
    take(controls.rates, settings.rates, demand, now);
    reserveUsd(controls.spend, usd);
    useAhead(ahead, amountsOf(settings, demand, usd));
  }
  return reserved;
}

/** Whether calls at a member reserve rates or budgets, its own or the group's. */
export function isMeteredAt({ settings, members }: GroupState, member: MemberId): boolean {
  return settings.isMetered || members.get(member)?.settings.isMetered === true;
}

/** Returns the reservation of a call with this demand. null if nothing of it is counted. */
export function reservationOf(
  isMetered: boolean,
  { requests, inputTokens, outputTokens, usd }: Demand,
  { estimate, hasWaited }: EstimatedCall,
): Reserved | null {
  if (!isMetered && estimate === null) return null;
  const demand = { requests, inputTokens, outputTokens };
  const reserved = { demand, usd, inputEstimate: estimate?.inputTokens ?? null };
  if (estimate?.isBilled !== true) return reserved;
  const { team } = estimate;
  const billed = hasWaited ? 'waited' : 'at_once';
  return {
    ...reserved,
    billed,
    ...(estimate.price === null && { isUnpriced: true as const }),
    ...(team !== undefined && { team }),
  };
}

/**
 * Charges calls in flight to limits that are new, because their ends will refund them too. These charges leave no debt.
 */
export function countInFlight(
  state: GroupState,
  ledger: Pick<Ledger, 'controls' | 'settings'>,
  rates: RateSettings,
  isOf: (lease: ActiveLease) => boolean,
  now: InstantMs,
): void {
  const added = limitsAdded(ledger.settings.rates, rates);
  const of = [...state.leases.values()].filter(isOf);
  if (limitsOf(added).length === 0 || of.length === 0) return;
  const inFlight = of.toSorted((a, b) => a.grantedAt - b.grantedAt);
  for (const { reserved, grantedAt } of inFlight) {
    if (reserved !== null) take(ledger.controls.rates, added, reserved.demand, grantedAt);
  }
  refundDebts(ledger.controls.rates, added, now);
  state.isControlsDirty = true;
}

/**
 * Settles the reservation of a lease, once. With `unused` the upstream was never called, so everything is refunded. If
 * the upstream reported no count, the reservation counts.
 */
export function settleLease(
  state: GroupState,
  lease: ActiveLease,
  actual: Settlement | 'unused' | null,
  now: InstantMs,
): void {
  const { reserved, grantedAt: takenAt } = lease;
  if (actual !== 'unused' && actual?.bill !== undefined) {
    noteReported(state, lease, actual, actual.bill, now);
  }
  if (reserved === null) return;
  lease.reserved = null;
  const member = memberOf(state, lease);
  const used: CallUsage = actual === 'unused' || actual === null ? reserved.demand : actual;
  const { caller: key, agent, model } = lease.holder;
  const actualUsd = actual === 'unused' || actual === null ? reserved.usd : actual.usd;
  for (const ledger of ledgersOf(state, member)) {
    const { controls, settings } = ledger;
    const { rates, spend } = controls;
    keepSettled(state, ledger, reserved, actual, now);
    if (actual === 'unused') {
      refundRates(rates, settings.rates, { reserved: reserved.demand, takenAt }, now);
      refundUsd(spend, reserved.usd);
      continue;
    }
    settleRates(rates, settings.rates, { reserved: reserved.demand, actual: used, takenAt }, now);
    settleUsd(spend, { reservedUsd: reserved.usd, actualUsd, key, agent }, now);
  }
  if (actual === 'unused' || actual?.bill !== undefined) return;
  noteUsage(state, lease, used, actualUsd, now);
  noteBilled(state, lease.holder, reserved, actual, now);
  const { inputEstimate } = reserved;
  const seen = actual?.seen ?? null;
  if (seen === null || inputEstimate === null || model === null) return;
  observeUsage(state.controls.factors, model, { inputEstimate, ...seen });
}

/**
 * Adds a call to the costs of its group, if it counts there. A call that its upstream did not serve used nothing.
 * Without a count, the reservation counts, as in the budgets.
 */
function noteBilled(
  { controls: { costs } }: GroupState,
  { caller: key, model }: ActiveLease['holder'],
  reserved: Reserved,
  actual: Settlement | null,
  now: InstantMs,
): void {
  if (reserved.billed === undefined) return;
  const { inputTokens, outputTokens } = actual === null ? reserved.demand : (actual.seen ?? actual);
  const usd = actual === null ? reserved.usd : actual.usd;
  if (usd === 0 && inputTokens + outputTokens === 0) return;
  const isUnpriced = (actual ?? reserved).isUnpriced === true;
  const hasWaited = reserved.billed === 'waited';
  const used = { usd, inputTokens, outputTokens, cachedTokens: actual?.cachedTokens ?? 0 };
  noteCost(costs, { key, team: reserved.team ?? null, model, ...used, isUnpriced, hasWaited }, now);
}

/** Adds a call without a reservation to the costs of its group, with the use that the provider reported. */
function noteReported(
  state: GroupState,
  lease: ActiveLease,
  actual: Settlement,
  { team, model }: Bill,
  now: InstantMs,
): void {
  noteUsage(state, lease, actual, actual.usd, now);
  const { usd, inputTokens, outputTokens, cachedTokens = 0, isUnpriced = false, seen } = actual;
  const charged = { key: lease.holder.caller, team, model: lease.holder.model ?? model };
  if (lease.holder.model === null && model !== null) noteModel(lease, model);
  const used = { usd, inputTokens, outputTokens, cachedTokens, isUnpriced };
  const hasWaited = hasWaitedFirst(lease);
  noteCost(
    state.controls.costs,
    { ...charged, ...used, isUnreported: seen === null, hasWaited },
    now,
  );
  state.talliesDirtyAt ??= now;
}

/** Moves the reservation of a lease from one member to another. The limits over all members count it as before. */
export function moveReserved(
  state: GroupState,
  { reserved, grantedAt: takenAt }: ActiveLease,
  from: Member,
  to: Member,
  now: InstantMs,
): void {
  if (reserved === null) return;
  const { demand, usd } = reserved;
  // `state.controls` belongs to the only member if the group names none, and otherwise applies over all members.
  if (from.controls !== state.controls) {
    keepSettled(state, from, reserved, 'unused', now);
    refundRates(from.controls.rates, from.settings.rates, { reserved: demand, takenAt }, now);
    refundUsd(from.controls.spend, usd);
  }
  if (to.controls !== state.controls) {
    take(to.controls.rates, to.settings.rates, demand, takenAt);
    reserveUsd(to.controls.spend, usd);
    useAhead(to.ahead, amountsOf(to.settings, demand, usd));
  }
  state.isControlsDirty = true;
}

/** Uses more of the amounts stored ahead if a call exceeded its reservation, or returns what it did not use. */
function keepSettled(
  state: GroupState,
  { settings, ahead }: Ledger,
  { demand, usd }: Reserved,
  actual: Settlement | 'unused' | null,
  now: InstantMs,
): void {
  state.talliesDirtyAt ??= now;
  if (actual === null) return;
  const used = actual === 'unused' ? NOTHING : actual;
  const back = (sign: 1 | -1): Amounts =>
    amountsOf(
      settings,
      {
        requests: sign * (demand.requests - used.requests),
        inputTokens: sign * (demand.inputTokens - used.inputTokens),
        outputTokens: sign * (demand.outputTokens - used.outputTokens),
      },
      sign * (usd - used.usd),
    );
  useAhead(ahead, back(-1));
  const isMuch = returnAhead(ahead, back(1));
  if (isMuch || ahead.isOverdrawn) state.isControlsDirty = true;
}

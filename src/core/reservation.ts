import type { InstantMs } from './words/ids.ts';
import type { RateSettings } from './words/limits.ts';
import type { Usage, Demand, Reserved, Settlement } from './words/usage.ts';
import { limitsAdded, limitsOf } from './parts/rate-limits.ts';
import { refundDebts, refund as refundRates, settle as settleRates, take } from './parts/rates.ts';
import { refund as refundUsd, reserve as reserveUsd, settle as settleUsd } from './parts/spend.ts';
import { observeUsage } from './parts/token-factors.ts';
import type { GroupState, Lease } from './state.ts';
import { noteUsage } from './stats.ts';

/** Takes of the group's rates and budgets what a call demands besides slots. Null: there is nothing to take. */
export function reserveFor(
  state: GroupState,
  { requests, inputTokens, outputTokens, usd }: Demand,
  inputEstimate: number | null,
  now: InstantMs,
): Reserved | null {
  const { settings, controls } = state;
  if (!settings.isMetered && inputEstimate === null) return null;
  const demand = { requests, inputTokens, outputTokens };
  take(controls.rates, settings.rates, demand, now);
  reserveUsd(controls.spend, usd);
  state.isControlsDirty = true;
  return { demand, usd, inputEstimate };
}

/**
 * Counts what is in flight towards the limits that are set from now on: when it ends it will give back to
 * them too. But nobody owes for it.
 */
export function countInFlight(state: GroupState, rates: RateSettings, now: InstantMs): void {
  const added = limitsAdded(state.settings.rates, rates);
  if (limitsOf(added).length === 0) return;
  const inFlight = [...state.leases.values()].toSorted((a, b) => a.grantedAt - b.grantedAt);
  for (const { reserved, grantedAt } of inFlight) {
    if (reserved !== null) take(state.controls.rates, added, reserved.demand, grantedAt);
  }
  refundDebts(state.controls.rates, added, now);
  state.isControlsDirty = true;
}

/**
 * Settles what was reserved for a lease, once. `unused`: the upstream was never called, so all of it goes
 * back. Where the upstream did not say what it counted, what was reserved counts.
 */
export function settleLease(
  state: GroupState,
  lease: Lease,
  actual: Settlement | 'unused' | null,
  now: InstantMs,
): void {
  const { reserved, grantedAt: takenAt } = lease;
  if (reserved === null) return;
  lease.reserved = null;
  state.isControlsDirty = true;
  const { settings, controls } = state;
  const { rates, spend, factors } = controls;
  if (actual === 'unused') {
    refundRates(rates, settings.rates, { reserved: reserved.demand, takenAt }, now);
    return refundUsd(spend, reserved.usd);
  }
  const used: Usage = actual ?? reserved.demand;
  settleRates(rates, settings.rates, { reserved: reserved.demand, actual: used, takenAt }, now);
  const { caller: key, agent, model } = lease.holder;
  const cost = { reservedUsd: reserved.usd, actualUsd: actual?.usd ?? reserved.usd, key, agent };
  settleUsd(spend, cost, now);
  noteUsage(state, used, cost.actualUsd);
  const { inputEstimate } = reserved;
  const seen = actual?.seen ?? null;
  if (seen === null || inputEstimate === null || model === null) return;
  observeUsage(factors, model, { inputEstimate, ...seen });
}

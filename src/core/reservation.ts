import type { InstantMs } from './words/ids.ts';
import type { RateSettings } from './words/limits.ts';
import type { GroupSettings } from './words/settings.ts';
import type { Usage, Demand, Reserved, Settlement } from './words/usage.ts';
import { amountsOf, returnAhead, useAhead, type Amounts } from './parts/ahead.ts';
import { limitsAdded, limitsOf } from './parts/rate-limits.ts';
import { refundDebts, refund as refundRates, settle as settleRates, take } from './parts/rates.ts';
import { refund as refundUsd, reserve as reserveUsd, settle as settleUsd } from './parts/spend.ts';
import { observeUsage } from './parts/token-factors.ts';
import type { GroupState, Lease } from './state.ts';
import { noteUsage } from './stats.ts';

const NOTHING = { requests: 0, inputTokens: 0, outputTokens: 0, usd: 0 };

/** Takes of the group's rates and budgets what a call demands besides slots. Null: there is nothing to take. */
export function reserveFor(
  state: GroupState,
  wanted: Demand,
  inputEstimate: number | null,
  now: InstantMs,
): Reserved | null {
  const { settings, controls } = state;
  const reserved = reservationOf(settings, wanted, inputEstimate);
  if (reserved === null) return null;
  const { demand, usd } = reserved;
  take(controls.rates, settings.rates, demand, now);
  reserveUsd(controls.spend, usd);
  useAhead(state.ahead, amountsOf(settings, demand, usd));
  return reserved;
}

/** Works out what is taken for a call that demands so much. Null: nothing of it is counted. */
export function reservationOf(
  { isMetered }: GroupSettings,
  { requests, inputTokens, outputTokens, usd }: Demand,
  inputEstimate: number | null,
): Reserved | null {
  if (!isMetered && inputEstimate === null) return null;
  return { demand: { requests, inputTokens, outputTokens }, usd, inputEstimate };
}

/**
 * Counts what is in flight towards the limits that are set from now on: when it ends it will give back to
 * them too. But nobody owes for it.
 */
export function countInFlight(state: GroupState, rates: RateSettings, now: InstantMs): void {
  const added = limitsAdded(state.settings.rates, rates);
  if (limitsOf(added).length === 0 || state.leases.size === 0) return;
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
  const { settings, controls } = state;
  const { rates, spend, factors } = controls;
  keepSettled(state, reserved, actual, now);
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

/** Takes of what is written ahead what a call used beyond its reservation, or gives back what it did not use. */
function keepSettled(
  state: GroupState,
  { demand, usd }: Reserved,
  actual: Settlement | 'unused' | null,
  now: InstantMs,
): void {
  const { settings, ahead } = state;
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

import type { PoolStatus, RateStatus } from '../../contract/status.ts';
import { blockOf, isHeldByRates } from '../../core/capacity.ts';
import { isSplit } from '../../core/members.ts';
import { queueLength } from '../../core/parts/queue.ts';
import { periodBegin, PERIODS, spentIn, type Period } from '../../core/parts/spend.ts';
import type { GroupState } from '../../core/state.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import type { BudgetSettings } from '../../core/words/limits.ts';
import { rateStatuses } from '../../routing/group-limits.ts';

/** Returns the limits other than slots that keep calls out of a pool. */
export function stopsOf(
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

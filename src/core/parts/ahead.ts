import type { BudgetSettings, LimitName, RateSettings } from '../words/limits.ts';
import type { CallUsage } from '../words/usage.ts';
import { limitsOf, type RateLimit } from './rate-limits.ts';

/**
 * Amounts that the row of the controls counts as used in advance: one block of each rate and budget. Grants use up the
 * block and write nothing. A reset loses what is left of it.
 */

/** Amounts by limit. `usd` is the amount of the budgets. */
export type Amounts = Partial<Record<LimitName | 'usd', number>>;

interface AheadLimits {
  readonly rates: RateSettings;
  readonly budgets: BudgetSettings;
}

export interface Ahead {
  /** The blocks in the last row. */
  sizes: Amounts;
  /** What is left of them. A negative amount was used without being stored. */
  left: Amounts;
  /** Amounts refunded since that row. */
  returned: Amounts;
  /** The largest amount that one call has used or refunded since. */
  largest: Amounts;
  /** Whether more of a limit was used than is stored. No grant is answered before a write has corrected that. */
  isOverdrawn: boolean;
}

/**
 * Block sizes: one second of a rate per minute, one hundredth of a limit per day, and one four-hundredth of a budget.
 */
const MINUTE_PART = 1 / 60;
const DAY_PART = 1 / 100;
const BUDGET_PART = 1 / 400;

export function nothingAhead(): Ahead {
  return { sizes: {}, left: {}, returned: {}, largest: {}, isOverdrawn: false };
}

/** Returns the amounts of a use for all limits that have blocks. */
export function amountsOf({ rates, budgets }: AheadLimits, usage: CallUsage, usd: number): Amounts {
  const amounts: Amounts = {};
  for (const { name, amountOf } of blockedLimits(rates)) amounts[name] = amountOf(usage);
  if (leastBudget(budgets) !== Infinity) amounts.usd = usd;
  return amounts;
}

export function useAhead(ahead: Ahead, amounts: Amounts): void {
  for (const [name, amount] of entriesOf(amounts)) {
    if (amount <= 0) continue;
    noteLargest(ahead, name, amount);
    const left = (ahead.left[name] ?? 0) - amount;
    ahead.left[name] = left;
    if (left < 0) ahead.isOverdrawn = true;
  }
}

/**
 * Notes a refund. Grants may not use it before it is written, because a later instance may receive the same refund
 * again. Returns whether the refunds are large enough for a write.
 */
export function returnAhead(ahead: Ahead, amounts: Amounts): boolean {
  let isMuch = false;
  for (const [name, amount] of entriesOf(amounts)) {
    if (amount <= 0) continue;
    noteLargest(ahead, name, amount);
    const size = ahead.sizes[name] ?? 0;
    const returned = (ahead.returned[name] ?? 0) + amount;
    ahead.returned[name] = returned;
    if (returned > size) isMuch = true;
  }
  return isMuch;
}

/**
 * Sets the blocks aside that the next row counts as used. Each covers at least one call as large as recent ones. With
 * `isIdle` there are none.
 *
 * @param room what is left of the limits. A block of a limit per day never exceeds it, because nothing more can be used
 * for hours
 */
export function setAhead(
  ahead: Ahead,
  limits: AheadLimits,
  room: Amounts,
  isIdle: boolean,
): Amounts {
  const sizes: Amounts = {};
  if (!isIdle) {
    for (const [name, size] of blocksOf(limits)) {
      const wanted = Math.max(size, ahead.largest[name] ?? 0);
      const most = isOfDay(name) ? Math.max(0, room[name] ?? 0) : Infinity;
      sizes[name] = Math.min(wanted, most);
    }
  }
  Object.assign(ahead, { sizes, left: { ...sizes }, returned: {}, largest: {} });
  ahead.isOverdrawn = false;
  return sizes;
}

function noteLargest({ largest }: Ahead, name: LimitName | 'usd', amount: number): void {
  largest[name] = Math.max(largest[name] ?? 0, amount);
}

/** Starts per second have no block, because what a reset loses of them refills within a moment. */
function blockedLimits(rates: RateSettings): RateLimit[] {
  return limitsOf(rates).filter(({ name }) => name !== 'startsPerS');
}

function isOfDay(name: LimitName | 'usd'): boolean {
  return name === 'rpd' || name === 'tpd';
}

function leastBudget({ perHourUsd, perDayUsd, perMonthUsd }: BudgetSettings): number {
  return Math.min(...[perHourUsd, perDayUsd, perMonthUsd].map((usd) => usd ?? Infinity));
}

function blocksOf({ rates, budgets }: AheadLimits): [LimitName | 'usd', number][] {
  const blocks: [LimitName | 'usd', number][] = blockedLimits(rates).map(({ name }) => {
    const part = isOfDay(name) ? DAY_PART : MINUTE_PART;
    return [name, (rates[name] ?? 0) * part];
  });
  const budget = leastBudget(budgets);
  if (budget !== Infinity) blocks.push(['usd', budget * BUDGET_PART]);
  return blocks;
}

function entriesOf(amounts: Amounts): [LimitName | 'usd', number][] {
  return Object.entries(amounts) as [LimitName | 'usd', number][];
}

import type { BudgetSettings, LimitName, RateSettings } from '../words/limits.ts';
import type { CallUsage } from '../words/usage.ts';
import { limitsOf, type RateLimit } from './rate-limits.ts';

/**
 * Amounts that the row of the controls counts as used ahead of their use: a block of each rate and budget.
 * Grants eat it and write nothing. A reset loses the rest of it.
 */

/** Amounts of limits, by their names; `usd`: of the budgets. */
export type Amounts = Partial<Record<LimitName | 'usd', number>>;

interface AheadLimits {
  readonly rates: RateSettings;
  readonly budgets: BudgetSettings;
}

export interface Ahead {
  /** The blocks of the last row. */
  sizes: Amounts;
  /** The rest of them. Below 0: more was used than is written. */
  left: Amounts;
  /** Amounts given back since that row. */
  returned: Amounts;
  /** The largest amount that a call took since, or gave back. */
  largest: Amounts;
  /** More was used of something than is written: no grant is answered before that is mended. */
  isOverdrawn: boolean;
}

/** Blocks: a second of a rate per minute, a hundredth of a limit per day, a four-hundredth of a budget. */
const MINUTE_PART = 1 / 60;
const DAY_PART = 1 / 100;
const BUDGET_PART = 1 / 400;

/** Nothing is written ahead. */
export function nothingAhead(): Ahead {
  return { sizes: {}, left: {}, returned: {}, largest: {}, isOverdrawn: false };
}

/** Lists what a use takes of each limit that is kept in blocks. */
export function amountsOf({ rates, budgets }: AheadLimits, usage: CallUsage, usd: number): Amounts {
  const amounts: Amounts = {};
  for (const { name, amountOf } of blockedLimits(rates)) amounts[name] = amountOf(usage);
  if (leastBudget(budgets) !== Infinity) amounts.usd = usd;
  return amounts;
}

/** Takes `amounts` of what is left of the blocks. */
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
 * Notes that `amounts` were given back. Grants may not have them before they are written: an instance that comes
 * after this one may hear once more that they were given back. Returns whether there is so much of it that it had
 * better be written.
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
 * Sets the blocks aside that the next row counts as used: each for one call at least, as large as they were
 * lately. `isIdle`: none.
 *
 * @param room what is left of the limits: of one of a day nobody can use more for hours, so no more is set aside
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

/** Starts per second have no block: what a reset forgets of them comes back in no time. */
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

import type { GroupConfig } from '../contract/config/config.ts';

/** Tells whether a group counts tokens or cost. The others never look into a body or an answer for it. */
export function countsTokens({ limits, track_usage: isTracked }: GroupConfig): boolean {
  const { tpm, itpm, otpm, tpd } = limits;
  return isTracked || [tpm, itpm, otpm, tpd].some((limit) => limit !== null) || hasBudget(limits);
}

/** Tells whether a group must know what a call costs. */
export function hasBudget({
  budget_usd: budget,
}: Pick<GroupConfig['limits'], 'budget_usd'>): boolean {
  return budget.per_hour !== null || budget.per_day !== null || budget.per_month !== null;
}

import type { GroupConfig } from '../contract/config/config.ts';
import { membersOf } from './members.ts';

/** Limits of a group, or of a member of one. */
type Limits = Omit<GroupConfig['limits'], 'max_weight'>;
type Budgets = Pick<Limits, 'budget_usd'>;

/** Tells whether a group counts tokens or cost. The others never look into a body or an answer for it. */
export function countsTokens(group: GroupConfig): boolean {
  if (group.track_usage || areOfTokens(group.limits)) return true;
  return membersOf(group).some(({ config }) => areOfTokens(config.limits));
}

function areOfTokens(limits: Limits): boolean {
  const { tpm, itpm, otpm, tpd } = limits;
  return [tpm, itpm, otpm, tpd].some((limit) => limit !== null) || hasBudget(limits);
}

/** Tells whether a group, or a member of one, must know what a call costs. */
export function hasBudget({ budget_usd: budget }: Budgets): boolean {
  return budget.per_hour !== null || budget.per_day !== null || budget.per_month !== null;
}

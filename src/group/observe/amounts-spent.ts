import type { MemberStatus } from '../../contract/status.ts';
import type { Ledger } from '../../core/member.ts';
import { spentIn } from '../../core/parts/spend.ts';
import type { InstantMs } from '../../core/words/ids.ts';

/** Returns what a group or a member has spent. Returns null without a budget if nothing was ever counted. */
export function amountsSpent(
  { controls: { spend }, settings: { budgets } }: Pick<Ledger, 'controls' | 'settings'>,
  now: InstantMs,
): MemberStatus['spend'] {
  const hasBudget = Object.values(budgets).some((budget) => budget !== null);
  if (!hasBudget && spend.total.beganAt.month === 0) return null;
  return {
    hour_usd: spentIn(spend.total, 'hour', now),
    day_usd: spentIn(spend.total, 'day', now),
    month_usd: spentIn(spend.total, 'month', now),
    reserved_usd: spend.reservedUsd,
  };
}

import type { PoolStatus, SpendStatus } from '../../contract/status.ts';
import { slotsLearned } from '../../core/capacity.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import { spentIn, type Spender } from '../../core/parts/spend.ts';
import type { GroupState } from '../../core/state.ts';
import { rateStatuses } from '../../routing/group-rates.ts';
import { limitOf, type Definition } from '../definition.ts';

/** Maximum of those who spent most that are shown. */
const SPENDERS_SHOWN = 20;

type LimitStatus = Pick<
  PoolStatus,
  'limit' | 'paused_until' | 'breaker' | 'breaker_until' | 'refusals_total' | 'rates' | 'spend'
>;

/** Tells a pool's limits, what is left of them, and what its upstream said. */
export function limitStatus(
  definition: Definition,
  state: GroupState,
  now: InstantMs,
): LimitStatus {
  const { controls, totals } = state;
  const { pause, breaker, ceiling } = controls;
  const limit = limitOf(definition);
  const isOpen = breaker.phase === 'open';
  return {
    limit:
      ceiling.slots === null
        ? limit
        : { ...limit, effective: slotsLearned(state), source: 'learned' },
    paused_until: now < pause.until ? isoOf(pause.until) : null,
    breaker: breaker.phase,
    breaker_until: isOpen ? isoOf(breaker.openUntil) : null,
    refusals_total: { ...totals.refusals },
    rates: rateStatuses(controls.rates, state.settings.rates, now),
    spend: spendOf(state, now),
  };
}

function spendOf({ controls, settings }: GroupState, now: InstantMs): SpendStatus | null {
  const { spend } = controls;
  const hasBudget = Object.values(settings.budgets).some((budget) => budget !== null);
  if (!hasBudget && spend.total.beganAt.month === 0) return null;
  return {
    hour_usd: spentIn(spend.total, 'hour', now),
    day_usd: spentIn(spend.total, 'day', now),
    month_usd: spentIn(spend.total, 'month', now),
    reserved_usd: spend.reservedUsd,
    day_usd_by_key: topOf(spend.keys, now),
    day_usd_by_agent: topOf(spend.agents, now),
  };
}

function topOf(spenders: readonly Spender[], now: InstantMs): Record<string, number> {
  const today = spenders.map((spender) => [spender.id, spentIn(spender, 'day', now)] as const);
  const spent = today.filter(([, usd]) => usd > 0).toSorted(([, a], [, b]) => b - a);
  return Object.fromEntries(spent.slice(0, SPENDERS_SHOWN));
}

function isoOf(at: InstantMs): string {
  return new Date(at).toISOString();
}

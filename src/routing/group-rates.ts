import type { GroupConfig } from '../contract/config/config.ts';
import type { RateStatus } from '../contract/status.ts';
import { BURST_MS, limitsOf, MINUTE_MS } from '../core/parts/rate-limits.ts';
import { leftOf, type RateUse } from '../core/parts/rates.ts';
import type { InstantMs } from '../core/words/ids.ts';
import type { LimitName, RateSettings } from '../core/words/limits.ts';
import type { GroupSettings } from '../core/words/settings.ts';

/** Limits whose name in the configuration differs. */
const NAMES: Partial<Record<LimitName, string>> = { startsPerS: 'starts_per_s' };

export function ratesOf(
  limits: Omit<GroupConfig['limits'], 'max_weight'>,
): Pick<GroupSettings, 'rates' | 'budgets' | 'isMetered'> {
  const { rpm, tpm, itpm, otpm, rpd, tpd, starts_per_s: startsPerS, budget_usd: budget } = limits;
  const burstMs = limits.burst === null ? BURST_MS : limits.burst * MINUTE_MS;
  const rates = { rpm, tpm, itpm, otpm, rpd, tpd, startsPerS };
  const budgets = {
    perHourUsd: budget.per_hour,
    perDayUsd: budget.per_day,
    perMonthUsd: budget.per_month,
  };
  const isMetered = [...Object.values(rates), ...Object.values(budgets)].some(
    (limit) => limit !== null,
  );
  return { rates: { ...rates, burstMs }, budgets, isMetered };
}

export function rateStatuses(
  rates: RateUse,
  settings: RateSettings,
  now: InstantMs,
): Record<string, RateStatus> {
  const left = leftOf(rates, settings, now);
  return Object.fromEntries(
    limitsOf(settings).map(({ name }) => [
      NAMES[name] ?? name,
      { limit: settings[name] ?? 0, left: Math.floor(left[name] ?? 0) },
    ]),
  );
}

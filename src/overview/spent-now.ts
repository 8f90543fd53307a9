import type { SpendStatus } from '../contract/status.ts';
import { spentIn, type Period, type Spent } from '../core/parts/spend.ts';
import type { InstantMs } from '../core/words/ids.ts';

type SpentUsd = Pick<SpendStatus, 'hour_usd' | 'day_usd' | 'month_usd'>;

/** Sets the spend of an hour, day or month that has ended since the report to 0. */
export function spentNow(reported: SpentUsd, reportedAt: InstantMs, now: InstantMs): SpentUsd {
  const spent: Spent = {
    usd: { hour: reported.hour_usd, day: reported.day_usd, month: reported.month_usd },
    beganAt: { hour: reportedAt, day: reportedAt, month: reportedAt },
  };
  const of = (period: Period): number => spentIn(spent, period, now);
  return { hour_usd: of('hour'), day_usd: of('day'), month_usd: of('month') };
}

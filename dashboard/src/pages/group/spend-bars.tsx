import { usd } from '../../format.ts';
import type { GroupView } from '../../model/status.ts';
import { Said } from '../../ui/said.tsx';
import { Level } from '../../ui/level.tsx';
import { Figure } from './figure.tsx';

interface BudgetAmounts {
  readonly per_hour: number | null;
  readonly per_day: number | null;
  readonly per_month: number | null;
}

interface SpendBarsProps {
  readonly spend: NonNullable<GroupView['spend']>;
  /** null if there is none, or it is unknown. */
  readonly budget: BudgetAmounts | null;
}

/** Spend of the current hour, day and month in UTC, with their budgets. */
export function SpendBars({ spend, budget }: SpendBarsProps) {
  const spans = [
    { name: 'this hour', spent: spend.hour_usd, of: budget?.per_hour ?? null },
    { name: 'today', spent: spend.day_usd, of: budget?.per_day ?? null },
    { name: 'this month', spent: spend.month_usd, of: budget?.per_month ?? null },
  ];
  const free = spans.filter(({ of }) => of === null);
  const most = Object.entries(spend.day_usd_by_key).toSorted(([, a], [, b]) => b - a);
  return (
    <>
      {spans.map(
        ({ name, spent, of }) =>
          of !== null && (
            <Figure name={`Spent ${name}`} key={name}>
              <b>{usd(spent)}</b> of {usd(of)}
              <Level part={spent / of} isBad={spent >= of} />
            </Figure>
          ),
      )}
      {free.length > 0 && (
        <Figure name="Spent, without a budget">
          {free.map(({ name, spent }) => (
            <span class="count" key={name}>
              <b>{usd(spent)}</b> {name}
            </span>
          ))}
        </Figure>
      )}
      {spend.reserved_usd > 0 && (
        <Figure name="Reserved for calls in flight">
          <b>{usd(spend.reserved_usd)}</b>
        </Figure>
      )}
      {most.length > 0 && (
        <Figure name="Highest spend today">
          {most.slice(0, 3).map(([tenant, spent]) => (
            <span class="count" key={tenant}>
              <b>{usd(spent)}</b> <Said name={tenant} />
            </span>
          ))}
        </Figure>
      )}
    </>
  );
}

import type { ConfigInput } from '../../contract/config/config.ts';

type BudgetInput = NonNullable<
  NonNullable<NonNullable<ConfigInput['groups']>[number]['limits']>['budget_usd']
>;

export interface ConvertedBudget {
  readonly budget: BudgetInput;
  /** Absent if it is the same. */
  readonly note?: string;
}

const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;
const MONTH_S = 30 * DAY_S;

const UNIT_S: Readonly<Record<string, number>> = {
  s: 1,
  m: 60,
  h: HOUR_S,
  d: DAY_S,
  w: 7 * DAY_S,
  mo: MONTH_S,
};

/** Periods of budgets in Headgate, the longest first. */
const PERIODS = [
  { field: 'per_month', name: 'month', seconds: MONTH_S },
  { field: 'per_day', name: 'day', seconds: DAY_S },
  { field: 'per_hour', name: 'hour', seconds: HOUR_S },
] as const;

/**
 * Converts a budget for any period to a period of Headgate, so that no more is spent in the original period. null if it
 * has no period or an invalid one.
 */
export function budgetOf(usd: number, duration: string | undefined): ConvertedBudget | null {
  if (duration === undefined) return null;
  const [, amount, unit = ''] = /^(\d{1,6})\s*(s|m|h|d|w|mo)$/.exec(duration.trim()) ?? [];
  const seconds = Number(amount) * (UNIT_S[unit] ?? Number.NaN);
  if (!(seconds > 0)) return null;
  const period = PERIODS.find((each) => each.seconds <= seconds) ?? PERIODS[2];
  const parts = Math.max(1, seconds / period.seconds);
  // Rounded down, so that all parts together do not exceed the whole.
  const part = Math.floor((usd / parts) * 1e6) / 1e6;
  const budget = { [period.field]: part };
  if (seconds === period.seconds) return { budget };
  const written = `${usd} USD in ${duration.trim()}`;
  return { budget, note: `The budget of ${written} became ${part} USD per ${period.name}` };
}

export function whyNoBudget(duration: unknown): string {
  if (duration === undefined || duration === null) {
    return 'has no period, so it never resets, and Headgate has budgets per hour, day or month only. Set a period, as in 30d';
  }
  return 'has an invalid period. Write it as in 30d';
}

/** Divides a budget among members that each count separately. */
export function sharedBudget(budget: BudgetInput, places: number): BudgetInput {
  if (places === 1) return budget;
  return Object.fromEntries(
    Object.entries(budget).map(([field, usd]) => [
      field,
      typeof usd === 'number' ? Math.floor((usd / places) * 1e6) / 1e6 : usd,
    ]),
  );
}

/** Returns the stricter of two budgets in each period. */
export function stricterBudget(one: BudgetInput, two: BudgetInput): BudgetInput {
  const fields = PERIODS.map(({ field }) => {
    const both = [one[field], two[field]].filter((usd) => typeof usd === 'number');
    return [field, both.length === 0 ? undefined : Math.min(...both)] as const;
  });
  return Object.fromEntries(fields.filter(([, usd]) => usd !== undefined));
}

import type { GroupConfig } from '../../../src/contract/config/config.ts';
import { count, usd } from '../format.ts';

type GroupLimits = GroupConfig['limits'];

const RATES = ['rpm', 'tpm', 'itpm', 'otpm', 'rpd', 'tpd'] as const;
const BUDGETS = [
  ['per_hour', 'per hour'],
  ['per_day', 'per day'],
  ['per_month', 'per month'],
] as const;

/** Limits of a group in a few words each, such as `5 slots` and `600 rpm`. */
export function limitWords(limits: GroupLimits): string[] {
  const { max_concurrency: slots, starts_per_s: starts, budget_usd: budget } = limits;
  return [
    slots === null ? 'any number of slots' : slots === 1 ? '1 slot' : `${count(slots)} slots`,
    ...RATES.flatMap((rate) => {
      const limit = limits[rate];
      return limit === null ? [] : [`${count(limit)} ${rate}`];
    }),
    ...(starts === null ? [] : [`${count(starts)} starts per second`]),
    ...BUDGETS.flatMap(([field, words]) => {
      const limit = budget[field];
      return limit === null ? [] : [`${usd(limit)} ${words}`];
    }),
  ];
}

import type { GroupConfig } from '../../../src/contract/config/config.ts';
import { count, usd } from '../format.ts';

type GroupLimits = GroupConfig['limits'];

const RATES = ['rpm', 'tpm', 'itpm', 'otpm', 'rpd', 'tpd'] as const;
const BUDGETS = [
  ['per_hour', 'an hour'],
  ['per_day', 'a day'],
  ['per_month', 'a month'],
] as const;

/** The limits of a group in a few words each, as in `5 slots` and `600 rpm`. */
export function limitWords(limits: GroupLimits): string[] {
  const { max_concurrency: slots, starts_per_s: starts, budget_usd: budget } = limits;
  return [
    slots === null ? 'any number of slots' : slots === 1 ? '1 slot' : `${count(slots)} slots`,
    ...RATES.flatMap((rate) => {
      const limit = limits[rate];
      return limit === null ? [] : [`${count(limit)} ${rate}`];
    }),
    ...(starts === null ? [] : [`${count(starts)} starts a second`]),
    ...BUDGETS.flatMap(([field, words]) => {
      const limit = budget[field];
      return limit === null ? [] : [`${usd(limit)} ${words}`];
    }),
  ];
}

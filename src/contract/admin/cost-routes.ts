import * as z from 'zod';
import { routes } from './route.ts';

/** Costs of calls, by day and month of UTC. */

const usd = z.number().min(0);
const count = z.int().min(0);

const COSTS_BY = ['key', 'team', 'model', 'group'] as const;

const sums = {
  usd: usd.meta({
    description: 'What the calls cost, as far as their prices are known.',
    unit: 'USD',
  }),
  input_tokens: count.meta({
    description: 'Input, what was read from a cache among it.',
    unit: 'tokens',
  }),
  cached_tokens: count.meta({ description: 'Input read from a cache.', unit: 'tokens' }),
  output_tokens: count.meta({ description: 'Output.', unit: 'tokens' }),
  calls: count.meta({
    description: 'Calls that used anything, and those whose use is unknown.',
    unit: 'calls',
  }),
  unpriced_calls: count.meta({
    description:
      'Those of them whose price nobody knows: their tokens are in, and they cost 0 here.',
    unit: 'calls',
  }),
  unreported_calls: count.meta({
    description:
      'Those of them whose answers reported no usage: they count no tokens and cost 0 here. Only in groups that read nothing else.',
    unit: 'calls',
  }),
  waited_calls: count.meta({
    description:
      'Those of them that had to wait in the queue of the group that they count in; waits for limits of keys and teams are none.',
    unit: 'calls',
  }),
};

const sumsSchema = z.object(sums);

const budgetSchema = z.object({
  limit_usd: usd.meta({ description: 'The budget of this day or month.', unit: 'USD' }),
  spent_usd: usd.nullable().meta({
    description:
      'What counts towards it, by the group that holds the budget. After a restart of its object it may be more than the costs beside it. Null: the group did not answer.',
    unit: 'USD',
  }),
  reserved_usd: usd
    .nullable()
    .meta({ description: 'Estimates of the calls in flight. Null: as above.', unit: 'USD' }),
  left_usd: usd
    .nullable()
    .meta({ description: 'What is left for new calls. Null: as above.', unit: 'USD' }),
});

const range = (what: string, unit: string) =>
  z
    .object({
      from: z.number().min(0).describe('At least.'),
      to: z.number().min(0).describe('At most.'),
    })
    .meta({ description: what, unit });

const rowSchema = z.object({
  name: z
    .string()
    .nullable()
    .describe(
      'The key (or fingerprint of a provider key), team, model or group. Null: calls without one.',
    ),
  is_rest: z
    .boolean()
    .describe(
      'It is what found no row of its own in pools with more than 200 pairs of key and model.',
    ),
  ...sums,
  budget: budgetSchema
    .nullable()
    .describe('Budget of this day or month. Null: none, or the day or month is over.'),
});

export const costsSchema = z.object({
  period: z.enum(['day', 'month']).describe('Kind of the period.'),
  name: z.string().describe('The day or month of UTC, as `2026-11-24` or `2026-11`.'),
  by: z.enum(COSTS_BY).describe('What the rows are of.'),
  total: sumsSchema.describe('All rows together.'),
  rows: z.array(rowSchema).describe('The most expensive first. They add up to the total.'),
  days: z
    .array(sumsSchema.extend({ date: z.string().describe('The day, as `2026-11-24`.') }))
    .describe('The same by day, in order; days without calls are left out.'),
  without_queue: z
    .object({
      tries_more: range('Tries after the first, most of them refused.', 'tries'),
      failed_calls: range('Calls whose client would have given up.', 'calls'),
      usd_one_step: range('Paid for in vain, if each of these loses one paid call.', 'USD'),
      usd_whole_run: range('The same, if each is a step of ten, and all begin again.', 'USD'),
    })
    .describe('Estimate of what refusals and retries would have cost without the queue.'),
  not_metered: z
    .array(z.string())
    .describe(
      'Groups with `track_usage: off` and without a budget. Calls there are known only where a key, team or other group counts them.',
    ),
  unreachable: z
    .array(
      z.object({
        group: z.string().describe('The group.'),
        partition: z.string().nullable().describe('The partition. Null: the group is not split.'),
        error: z.string().describe('Why it did not answer.'),
      }),
    )
    .describe(
      'Pools in use that did not answer: what they said last is counted, up to 10 minutes old.',
    ),
});

export const COST_ROUTES = routes({
  getCosts: {
    tag: 'status',
    summary: 'Costs and tokens of a day or month, by key, team, model or group',
    description:
      'Each call is counted once, when it has ended, in the narrowest group that stands for something of a provider; limits of keys and teams come on top. Calls of groups with `track_usage: off` are not in it, unless another group counts them. CSV has no row for the total. After a restart of an object the last 10 seconds of it may be missing. A call counts for the team that its key had then. CSV with `format=csv`, or by `Accept: text/csv`.',
    role: 'viewer',
    query: z.strictObject({
      period: z.enum(['day', 'month']).default('month').describe('Kind of the period, of UTC.'),
      which: z
        .enum(['this', 'last'])
        .default('this')
        .describe('The one that is, or the one before.'),
      by: z.enum(COSTS_BY).default('key').describe('What the rows are of.'),
      format: z
        .enum(['json', 'csv'])
        .optional()
        .describe('Form of the answer. Absent: as `Accept` says, else JSON.'),
    }),
    answers: { 200: costsSchema },
  },
});

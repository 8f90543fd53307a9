import * as z from 'zod';
import { routes } from './route.ts';

const usd = z.number().min(0);
const count = z.int().min(0);

const COSTS_BY = ['key', 'team', 'model', 'group'] as const;

const sums = {
  usd: usd.meta({
    description: 'Cost of the calls with a known price.',
    unit: 'USD',
  }),
  input_tokens: count.meta({
    description: 'Input tokens, including cached ones.',
    unit: 'tokens',
  }),
  cached_tokens: count.meta({ description: 'Cached input tokens.', unit: 'tokens' }),
  output_tokens: count.meta({ description: 'Output tokens.', unit: 'tokens' }),
  calls: count.meta({
    description: 'Calls with usage, and calls whose usage is unknown.',
    unit: 'calls',
  }),
  unpriced_calls: count.meta({
    description: 'Calls without a known price. Their tokens count, and their cost counts as 0.',
    unit: 'calls',
  }),
  unreported_calls: count.meta({
    description:
      'Calls whose responses reported no usage. Their tokens and cost count as 0. Only in groups that do not estimate usage.',
    unit: 'calls',
  }),
  waited_calls: count.meta({
    description:
      'Calls that waited in the queue of the group in which they count. Waits for limits of keys and teams do not count.',
    unit: 'calls',
  }),
};

const sumsSchema = z.object(sums);

const budgetSchema = z.object({
  limit_usd: usd.meta({ description: 'Budget of this day or month.', unit: 'USD' }),
  spent_usd: usd.nullable().meta({
    description:
      'Spend that counts towards the budget, as reported by its group. After a restart of its object, it may exceed the costs in this response. null if the group did not respond.',
    unit: 'USD',
  }),
  reserved_usd: usd.nullable().meta({
    description: 'Estimated cost of the calls in flight. null if the group did not respond.',
    unit: 'USD',
  }),
  left_usd: usd.nullable().meta({
    description: 'Remaining budget for new calls. null if the group did not respond.',
    unit: 'USD',
  }),
});

const range = (what: string, unit: string) =>
  z
    .object({
      from: z.number().min(0).describe('Minimum.'),
      to: z.number().min(0).describe('Maximum.'),
    })
    .meta({ description: what, unit });

const rowSchema = z.object({
  name: z
    .string()
    .nullable()
    .describe(
      'Key (or fingerprint of a provider key), team, model or group. null for calls without one.',
    ),
  is_rest: z
    .boolean()
    .describe(
      'Whether the row sums up the calls without a row of their own, in pools with more than 200 pairs of key and model.',
    ),
  ...sums,
  budget: budgetSchema
    .nullable()
    .describe('Budget of this day or month. null if there is none, or the period has ended.'),
});

export const costsSchema = z.object({
  period: z.enum(['day', 'month']).describe('Kind of the period.'),
  name: z.string().describe('UTC day or month, such as `2026-11-24` or `2026-11`.'),
  by: z.enum(COSTS_BY).describe('Grouping of the rows.'),
  total: sumsSchema.describe('Sum of all rows.'),
  rows: z.array(rowSchema).describe('Rows, the most expensive first. They add up to the total.'),
  days: z
    .array(sumsSchema.extend({ date: z.string().describe('Day, such as `2026-11-24`.') }))
    .describe('Sums by day, in order. Days without calls are omitted.'),
  without_queue: z
    .object({
      tries_more: range('Attempts after the first one, most of them refused.', 'attempts'),
      failed_calls: range('Calls whose client would have given up.', 'calls'),
      usd_one_step: range('Wasted cost if each failed call wastes one paid call.', 'USD'),
      usd_whole_run: range(
        'Wasted cost if each failed call is one of ten steps that all start again.',
        'USD',
      ),
    })
    .describe('Estimated cost of refusals and retries without the queue.'),
  not_metered: z
    .array(z.string())
    .describe(
      'Groups with `track_usage: off` and without a budget. Their calls count only if a key, team or other group counts them.',
    ),
  unreachable: z
    .array(
      z.object({
        group: z.string().describe('Name of the group.'),
        partition: z.string().nullable().describe('Partition. null if the group is not split.'),
        error: z.string().describe('Why it did not respond.'),
      }),
    )
    .describe(
      'Pools in use that did not respond. Their last report counts, which is up to 10 minutes old.',
    ),
});

export const COST_ROUTES = routes({
  getCosts: {
    tag: 'status',
    summary: 'Get costs and tokens of a day or month, by key, team, model or group',
    description:
      'Each call counts once, when it ends, in its narrowest group that matches models, upstreams or base URLs. It counts for the team that its key had at that time. Calls of groups with `track_usage: off` count only if another group counts them. After a restart of an object, its last 10 seconds may be missing. `format=csv` or `Accept: text/csv` returns CSV, which has no row for the total.',
    role: 'viewer',
    query: z.strictObject({
      period: z.enum(['day', 'month']).default('month').describe('UTC period.'),
      which: z
        .enum(['this', 'last'])
        .default('this')
        .describe('The current period, or the one before.'),
      by: z.enum(COSTS_BY).default('key').describe('Grouping of the rows.'),
      format: z
        .enum(['json', 'csv'])
        .optional()
        .describe('Format of the response. Defaults to that in `Accept`, or to JSON.'),
    }),
    answers: { 200: costsSchema },
  },
});

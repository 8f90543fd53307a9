import * as z from 'zod';
import { route } from '../route.ts';
import { unreachableAnywhere } from '../pools.ts';
import { toCsv } from '../cost-csv.ts';
import { steadyClock } from '../../runtime/async.ts';
import { prefersType } from '../../runtime/header-value.ts';
import { ownPool } from '../../routing/pool.ts';
import { countsReports } from '../../routing/group-limits.ts';
import { KEY_PREFIX, TEAM_PREFIX, limitGroups } from '../../routing/implied-groups.ts';
import {
  askAwake,
  readDirectory,
  costDays,
  costRows,
  readCosts,
  type Directory,
  type CostsBy,
} from '../../overview/pools.ts';
import { withoutQueue, dateOf, daysOf, periodsAt } from '../../history/costs.ts';
import type { Env } from '../../env.ts';
import { type CostSums, NO_COSTS, addSums } from '../../core/parts/costs.ts';
import type { PoolStatus } from '../../contract/status.ts';
import type { GroupConfig } from '../../contract/config/config.ts';

const amountUsd = z.number().min(0);

const count = z.int().min(0);

const COSTS_BY = ['key', 'team', 'model', 'group'] as const;

const sumFields = {
  usd: amountUsd.meta({
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

const sumsSchema = z.object(sumFields);

const budgetSchema = z.object({
  limit_usd: amountUsd.meta({ description: 'Budget of this day or month.', unit: 'USD' }),
  spent_usd: amountUsd.nullable().meta({
    description:
      'Spend that counts towards the budget, as reported by its group. After a restart of its object, it may exceed the costs in this response. null if the group did not respond.',
    unit: 'USD',
  }),
  reserved_usd: amountUsd.nullable().meta({
    description: 'Estimated cost of the calls in flight. null if the group did not respond.',
    unit: 'USD',
  }),
  left_usd: amountUsd.nullable().meta({
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
  ...sumFields,
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

export const costsQuery = z.strictObject({
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
});

type CostQuery = z.output<typeof costsQuery>;

type CostsBody = z.output<typeof costsSchema>;

type CostRowBudget = CostsBody['rows'][number]['budget'];

const LIMITS = { day: 'per_day', month: 'per_month' } as const;

const SPENT = { day: 'day_usd', month: 'month_usd' } as const;

const COLUMNS = [
  'usd',
  'input_tokens',
  'cached_tokens',
  'output_tokens',
  'calls',
  'unpriced_calls',
  'unreported_calls',
  'waited_calls',
] as const;

export const COST_ROUTES = {
  getCosts: route('GET /costs', {
    tag: 'status',
    summary: 'Get costs and tokens of a day or month, by key, team, model or group',
    description:
      'Each call counts once, when it ends, in its narrowest group that matches models, upstreams or base URLs. It counts for the team that its key had at that time. Calls of groups with `track_usage: off` count only if another group counts them. After a restart of an object, its last 10 seconds may be missing. `format=csv` or `Accept: text/csv` returns CSV, which has no row for the total.',
    role: 'viewer',
    query: costsQuery,
    answers: { 200: costsSchema },
  }).servedBy(async ({ context, query }) => {
    const body = await costsOf(context.env, query);
    const wantsCsv = query.format === undefined && isCsv(context.req.header('accept'));
    if (query.format !== 'csv' && !wantsCsv) return { status: 200, body };
    const file = `costs-${body.name}-by-${body.by}.csv`;
    return new Response(csvOf(body), {
      headers: {
        'content-type': 'text/csv; charset=utf-8',
        'content-disposition': `attachment; filename="${file}"`,
      },
    });
  }),
};

async function costsOf(env: Env, { period, which, by }: CostQuery): Promise<CostsBody> {
  // The clock of the pools.
  const names = periodsAt(steadyClock.now());
  const name = names[which === 'this' ? period : (`${period}Before` as const)];
  const directory = await readDirectory(env);
  const [{ pools, queried }, budgets] = await Promise.all([
    readCosts(env, directory, name),
    which === 'this' ? budgetsBy(env, directory, by, period) : new Map<string, CostRowBudget>(),
  ]);
  const rows = costRows(pools, by);
  const total = rows.reduce<CostSums>(addSums, NO_COSTS);
  const spent = new Set(rows.map((row) => row.name));
  const unspent = [...budgets.keys()].filter((each) => !spent.has(each));
  return {
    period,
    name,
    by,
    total: shown(total),
    rows: [
      ...rows.map((row) => ({
        name: row.name,
        is_rest: row.isRest,
        ...shown(row),
        budget: row.name === null ? null : (budgets.get(row.name) ?? null),
      })),
      ...unspent.map((each) => ({
        name: each,
        is_rest: false,
        ...shown(NO_COSTS),
        budget: budgets.get(each) ?? null,
      })),
    ],
    days: costDays(pools).map(({ date, ...sums }) => ({ date, ...shown(sums) })),
    // Calls without a known price count as free. The average price of the others would overstate the savings.
    without_queue: withoutQueue(total.waited, total.calls === 0 ? 0 : total.usd / total.calls),
    not_metered: notMetered(directory),
    unreachable: unreachableAnywhere(queried),
  };
}

function shown({
  usd,
  inputTokens,
  cachedTokens,
  outputTokens,
  calls,
  unpriced,
  unreported = 0,
  waited,
}: CostSums) {
  return {
    usd,
    input_tokens: inputTokens,
    cached_tokens: cachedTokens,
    output_tokens: outputTokens,
    calls,
    unpriced_calls: unpriced,
    unreported_calls: unreported,
    waited_calls: waited,
  };
}

/** Returns the budgets of rows by their names. A split group has one budget per partition, so it has none here. */
async function budgetsBy(
  env: Env,
  directory: Directory,
  by: CostsBy,
  period: CostQuery['period'],
): Promise<Map<string, CostRowBudget>> {
  const limits = new Map(
    groupsBy(directory, by).flatMap(([name, group]) => {
      const limit = group.limits.budget_usd[LIMITS[period]];
      const pool = ownPool(group);
      return limit === null || pool === null ? [] : [[pool, { name, limit }] as const];
    }),
  );
  const asked = await askAwake(
    env,
    directory,
    [...limits.keys()],
    (pool): Promise<Pick<PoolStatus, 'spend'>> => pool.status(),
    ({ status }) => status,
  );
  const spends = new Map(
    asked.flatMap((one) => ('answer' in one ? [[one.pool, one.answer.spend] as const] : [])),
  );
  return new Map(
    [...limits].map(([pool, { name, limit }]) => {
      const spend = spends.get(pool);
      return [name, spend === undefined ? unknown(limit) : budgetOf(limit, spend, period)];
    }),
  );
}

function budgetOf(
  limit: number,
  spend: PoolStatus['spend'],
  period: CostQuery['period'],
): CostRowBudget {
  const [spent, reserved] = [spend?.[SPENT[period]] ?? 0, spend?.reserved_usd ?? 0];
  const left = Math.max(0, limit - spent - reserved);
  return { limit_usd: limit, spent_usd: spent, reserved_usd: reserved, left_usd: left };
}

function unknown(limit: number): CostRowBudget {
  return { limit_usd: limit, spent_usd: null, reserved_usd: null, left_usd: null };
}

/** Returns the groups whose budgets rows have, with the names of the rows. A model has none. */
function groupsBy({ config }: Directory, by: CostsBy): [name: string, group: GroupConfig][] {
  if (by === 'model') return [];
  if (by === 'group') return config.groups.map((group) => [group.name, group]);
  const prefix = { key: KEY_PREFIX, team: TEAM_PREFIX }[by];
  return limitGroups(config).flatMap((group) =>
    group.name.startsWith(prefix) ? [[group.name.slice(prefix.length), group] as const] : [],
  ) as [string, GroupConfig][];
}

/** Returns the groups that count no costs themselves. Automatic groups always count what responses report. */
function notMetered({ config }: Directory): string[] {
  return config.groups.filter((group) => !countsReports(group)).map(({ name }) => name);
}

function isCsv(accept: string | undefined): boolean {
  return prefersType(accept, (type) => type === 'text/csv', 'application/json');
}

/** Writes only the rows. A row for their total would double every sum of a spreadsheet. */
function csvOf({ by, name, rows }: CostsBody): string {
  const header = ['from', 'to', by, ...COLUMNS, 'budget_usd', 'budget_left_usd'];
  const days = daysOf(name);
  const [from, to] = days === null ? [name, name] : [dateOf(days.from), dateOf(days.to)];
  const lines = rows.map((row) => [
    from,
    to,
    row.is_rest ? '(others)' : (row.name ?? '(none)'),
    ...sumsOf(row),
    row.budget?.limit_usd ?? null,
    row.budget?.left_usd ?? null,
  ]);
  return toCsv(header, lines);
}

/** If no call has a known price, the cost is empty instead of 0. */
function sumsOf(row: CostsBody['total']): (number | null)[] {
  const isUnknown = row.calls > 0 && row.unpriced_calls + row.unreported_calls === row.calls;
  return COLUMNS.map((column) => (column === 'usd' && isUnknown ? null : row[column]));
}

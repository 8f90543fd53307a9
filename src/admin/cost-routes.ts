import { prefersType } from '../runtime/header-value.ts';
import type * as z from 'zod';
import type { costsSchema } from '../contract/admin/cost-routes.ts';
import type { CheckedPart } from '../contract/admin/route.ts';
import type { AdminRoutes } from '../contract/admin/routes.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import type { PoolStatus } from '../contract/status.ts';
import { addSums, NO_COSTS, type CostSums } from '../core/parts/costs.ts';
import type { Env } from '../env.ts';
import { dateOf, daysOf, periodsAt } from '../history/periods.ts';
import { withoutQueue } from '../history/without-queue.ts';
import { costDays, costRows, readCosts, type CostsBy } from '../overview/costs.ts';
import { askAwake, readDirectory, type Directory } from '../overview/pools.ts';
import { KEY_PREFIX, limitGroups, TEAM_PREFIX } from '../routing/key-groups.ts';
import { countsReports } from '../routing/group-limits.ts';
import { ownPool } from '../routing/pool.ts';
import { steadyClock } from '../runtime/clock.ts';
import type { AdminApp } from './context.ts';
import { toCsv } from './cost-csv.ts';
import { serve } from './serve.ts';

type CostQuery = CheckedPart<AdminRoutes['getCosts'], 'query'>;
type CostsBody = z.output<typeof costsSchema>;
type CostRowBudget = CostsBody['rows'][number]['budget'];

export function addCostRoutes(app: AdminApp): void {
  serve(app, 'getCosts', async ({ context, query }) => {
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
  });
}

async function costsOf(env: Env, { period, which, by }: CostQuery): Promise<CostsBody> {
  // The clock of the pools.
  const names = periodsAt(steadyClock.now());
  const name = names[which === 'this' ? period : (`${period}Before` as const)];
  const directory = await readDirectory(env);
  const [{ pools, unreachable }, budgets] = await Promise.all([
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
    unreachable: [...unreachable],
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

const LIMITS = { day: 'per_day', month: 'per_month' } as const;
const SPENT = { day: 'day_usd', month: 'month_usd' } as const;

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

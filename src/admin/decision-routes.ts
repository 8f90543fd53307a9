import type { AdminRoutes } from '../contract/admin/routes.ts';
import type { CheckedPart } from '../contract/admin/route.ts';
import type { DecisionFilter } from '../contract/decisions.ts';
import { directoryOf } from '../env.ts';
import { askPools, readDirectory } from '../overview/pools.ts';
import type { AdminApp } from './context.ts';
import { requirePools, unreachable } from './pools.ts';
import { serve } from './serve.ts';

/** Maximum number of stored warnings of a pool, and of warnings in a response about several pools. */
const WARNINGS_MAX = 100;

export function addDecisionRoutes(app: AdminApp): void {
  serve(app, 'listDecisions', async ({ context, params: { name }, query }) => {
    const filter = filterOf(query);
    const directory = await readDirectory(context.env);
    const pools = requirePools(directory, name);
    const asked = await askPools(context.env, directory.config, pools, (pool) =>
      pool.decisions(filter),
    );
    const decisions = asked.flatMap((one) =>
      'answer' in one ? one.answer.map((each) => ({ partition: one.pool.partition, ...each })) : [],
    );
    decisions.sort((a, b) => latestFirst(a.decided_at, b.decided_at));
    const body = { decisions: decisions.slice(0, query.limit), unreachable: unreachable(asked) };
    return { status: 200, body };
  });

  serve(app, 'listWarnings', async ({ context, params: { name } }) => {
    const directory = await readDirectory(context.env);
    const pools = requirePools(directory, name);
    const asked = await askPools(context.env, directory.config, pools, (pool) => pool.warnings());
    const warnings = asked.flatMap((one) => ('answer' in one ? one.answer : []));
    warnings.sort((a, b) => latestFirst(a.at, b.at));
    const body = { warnings: warnings.slice(0, WARNINGS_MAX), unreachable: unreachable(asked) };
    return { status: 200, body };
  });

  serve(app, 'listAllWarnings', async ({ context, query }) => {
    const warnings = await directoryOf(context.env).warnings(query.limit);
    return { status: 200, body: { warnings } };
  });
}

function latestFirst(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? 1 : -1;
}

function filterOf(query: CheckedPart<AdminRoutes['listDecisions'], 'query'>): DecisionFilter {
  const { lease, from, to, outcome, limit } = query;
  return {
    limit,
    ...(lease === undefined ? {} : { ids: lease.split(',').map((id) => id.trim()) }),
    ...(from === undefined ? {} : { fromMs: from }),
    ...(to === undefined ? {} : { toMs: to }),
    ...(outcome === undefined ? {} : { decided: outcome }),
  };
}

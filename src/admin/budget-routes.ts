import type { CorrectedSpend, SpendCorrection } from '../contract/rpc/group-rpc.ts';
import { askPools, readDirectory, type Directory } from '../overview/pools.ts';
import { definedGroup } from '../routing/key-groups.ts';
import { ownPool, type PlacedPool } from '../routing/pool.ts';
import { note } from './change.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { requirePools, unreachable } from './pools.ts';
import { ProblemError } from './problem.ts';
import { invalid, serve } from './serve.ts';

/** Serves corrections of what budgets have spent. */
export function addBudgetRoutes(app: AdminApp): void {
  serve(app, 'listCorrections', async ({ context, params: { name } }) => {
    const directory = await readDirectory(context.env);
    const pools = budgetPools(directory, name);
    const { config } = directory;
    const asked = await askPools(context.env, config, pools, (pool) => pool.corrections());
    const all = asked.flatMap((one) =>
      'answer' in one ? one.answer.map((each) => shown(each, one.pool)) : [],
    );
    const corrections = all.toSorted((a, b) => (a.at < b.at ? 1 : -1));
    return { status: 200, body: { corrections, unreachable: unreachable(asked) } };
  });

  serve(app, 'correctBudget', async ({ context, params: { name }, body }) => {
    const { amount_usd: usd, period, note: why, id = crypto.randomUUID(), partition } = body;
    const directory = await readDirectory(context.env);
    const pool = poolMeant(budgetPools(directory, name), name, partition);
    const { actor } = context.get('who');
    const wanted = { id, usd, period, note: why, by: actor };
    const [asked] = await askPools(context.env, directory.config, [pool], (one) =>
      one.correctSpend(wanted),
    );
    const answer = answerOf(asked, name);
    if (answer.isNew) await note(context, actionOf(name, answer.correction, pool));
    return { status: 200, body: corrected(name, answer, pool) };
  });

  serve(app, 'undoCorrection', async ({ context, params: { name, id } }) => {
    const { pool, answer } = await undo(context, name, id);
    if (answer.isNew) await note(context, `budget ${name}: undo correction ${id}`);
    return { status: 200, body: corrected(name, answer, pool) };
  });
}

/** Undoes a correction in whichever pool has it. */
async function undo(
  context: AdminContext,
  name: string,
  id: string,
): Promise<{ readonly pool: PlacedPool; readonly answer: CorrectedSpend }> {
  const directory = await readDirectory(context.env);
  const pools = budgetPools(directory, name);
  const asked = await askPools(context.env, directory.config, pools, (pool) =>
    pool.undoCorrection(id),
  );
  for (const one of asked) {
    if ('answer' in one && one.answer !== null) return { pool: one.pool, answer: one.answer };
  }
  if (unreachable(asked).length > 0) throw notReached(name);
  throw new ProblemError(404, `The budget of "${name}" has no correction "${id}".`);
}

/** Lists the pools whose budgets are a group's, also before its first call. */
function budgetPools(directory: Directory, name: string): readonly PlacedPool[] {
  const pools = requirePools(directory, name);
  const group = definedGroup(directory.config, name);
  const own = group === undefined ? null : ownPool(group);
  return pools.length === 0 && own !== null ? [own] : pools;
}

function poolMeant(
  pools: readonly PlacedPool[],
  name: string,
  partition: string | null | undefined,
): PlacedPool {
  const [only, ...others] = pools.filter(
    (pool) => partition === undefined || pool.partition === partition,
  );
  if (only !== undefined && others.length === 0) return only;
  if (partition === undefined && only !== undefined) {
    const message = `"${name}" is split, and each partition has a budget of its own: name the one to correct`;
    throw invalid([{ path: 'partition', message }]);
  }
  throw new ProblemError(404, `"${name}" has no such partition that was called.`);
}

function answerOf(
  asked: Awaited<ReturnType<typeof askPools<CorrectedSpend>>>[number] | undefined,
  name: string,
): CorrectedSpend {
  if (asked === undefined || 'error' in asked) throw notReached(name);
  return asked.answer;
}

function notReached(name: string): ProblemError {
  return new ProblemError(
    503,
    `The group "${name}" cannot be reached. Send the same id again shortly.`,
  );
}

function actionOf(name: string, { id, usd, period, note: why }: SpendCorrection, pool: PlacedPool) {
  const { partition } = pool;
  const where = partition === null ? name : `${name} (${partition})`;
  const reason = why === '' ? '' : `: ${why}`;
  return `budget ${where}: correct by ${usd} USD, ${period}, ${id}${reason}`;
}

function corrected(group: string, { correction, spent }: CorrectedSpend, pool: PlacedPool) {
  return { group, correction: shown(correction, pool), spent_usd: { ...spent } };
}

function shown(
  { id, period, usd, applied, by, note: why, at, undoneAt }: SpendCorrection,
  { partition }: PlacedPool,
) {
  return {
    id,
    partition,
    period,
    amount_usd: usd,
    applied_usd: { ...applied },
    by,
    note: why,
    at: new Date(at).toISOString(),
    undone_at: undoneAt === null ? null : new Date(undoneAt).toISOString(),
  };
}

import type { CorrectedSpend, GroupRpc, SpendCorrection } from '../contract/rpc/group-rpc.ts';
import { askPools, readDirectory, type Directory } from '../overview/pools.ts';
import { definedGroup } from '../routing/key-groups.ts';
import { ownPool, type PlacedPool } from '../routing/pool.ts';
import type { NewCorrection } from '../core/parts/spend.ts';
import { note } from './change.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { requireGroup } from './group-routes.ts';
import { requireMember } from './member-routes.ts';
import { requirePools, unreachable } from './pools.ts';
import { ProblemError } from './problem.ts';
import { invalid, serve } from './serve.ts';

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
    const {
      amount_usd: usd,
      period,
      note: why,
      id = crypto.randomUUID(),
      partition,
      member = null,
    } = body;
    const directory = await readDirectory(context.env);
    const pool = poolMeant(budgetPools(directory, name), name, partition);
    const { actor } = context.get('who');
    const wanted = { id, member, usd, period, note: why, by: actor };
    if (member !== null) requireMember(requireGroup(directory.config, name), member);
    const ask = <Answer>(work: (one: GroupRpc) => Promise<Answer>) =>
      askOne(context, directory, pool, work);
    const known = (await ask((one) => one.corrections())).find((each) => each.id === id);
    if (known === undefined) await note(context, actionOf(name, wanted, pool));
    else if (isOther(known, wanted)) throw idTaken(name, known);
    const answer = await ask((one) => one.correctSpend(wanted));
    if (answer === null) throw notReached(name);
    // A concurrent request with the same id may have come first.
    if (isOther(answer.correction, wanted)) throw idTaken(name, answer.correction);
    return { status: 200, body: corrected(name, answer, pool) };
  });

  serve(app, 'undoCorrection', async ({ context, params: { name, id } }) => {
    const directory = await readDirectory(context.env);
    const pool = await poolOfCorrection(context, directory, name, id);
    const answer = await askOne(context, directory, pool, (one) => one.undoCorrection(id));
    if (answer === null) throw unknownCorrection(name, id);
    return { status: 200, body: corrected(name, answer, pool) };
  });
}

async function askOne<Answer>(
  { env }: AdminContext,
  { config }: Directory,
  pool: PlacedPool,
  work: (one: GroupRpc) => Promise<Answer>,
): Promise<Answer> {
  const [asked] = await askPools(env, config, [pool], work);
  if (asked === undefined || 'error' in asked) throw notReached(pool.group);
  return asked.answer;
}

/**
 * Finds the pool that has a correction, and adds an audit entry for the undo. Entries are written before the budget
 * changes. Otherwise, an error in between would be answered with 503, and the retry would find nothing to log.
 */
async function poolOfCorrection(
  context: AdminContext,
  directory: Directory,
  name: string,
  id: string,
): Promise<PlacedPool> {
  const pools = budgetPools(directory, name);
  const asked = await askPools(context.env, directory.config, pools, (pool) => pool.corrections());
  for (const one of asked) {
    const found = 'answer' in one ? one.answer.find((each) => each.id === id) : undefined;
    if (found === undefined) continue;
    if (found.undoneAt === null) await note(context, `budget ${name}: undo correction ${id}`);
    return one.pool;
  }
  throw unreachable(asked).length > 0 ? notReached(name) : unknownCorrection(name, id);
}

/** Returns the pools of a group's budgets. A group has a pool even before its first call. */
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
    const message = `\`${name}\` is split, and each partition has its own budget. Name the partition`;
    throw invalid([{ path: 'partition', message }]);
  }
  throw new ProblemError(404, `Group \`${name}\` has no partition of this name with calls.`);
}

function notReached(name: string): ProblemError {
  return new ProblemError(503, `Group \`${name}\` is unreachable. Retry shortly with the same id.`);
}

function unknownCorrection(name: string, id: string): ProblemError {
  return new ProblemError(404, `The budget of \`${name}\` has no correction \`${id}\`.`);
}

function isOther(known: SpendCorrection, wanted: NewCorrection): boolean {
  const { usd, period, member } = wanted;
  return known.usd !== usd || known.period !== period || known.member !== member;
}

function idTaken(name: string, { id, usd, period, member }: SpendCorrection): ProblemError {
  const of = member === null ? '' : `, member ${member}`;
  return new ProblemError(
    409,
    `The budget of \`${name}\` already has a correction \`${id}\`, by ${usd} USD (${period}${of}). Use another id.`,
  );
}

function actionOf(
  name: string,
  { id, member, usd, period, note: why }: NewCorrection,
  { partition }: PlacedPool,
): string {
  const pool = partition === null ? name : `${name} (${partition})`;
  const where = member === null ? pool : `${pool}, member ${member}`;
  const reason = why === '' ? '' : `: ${why}`;
  return `budget ${where}: correct by ${usd} USD, ${period}, ${id}${reason}`;
}

function corrected(group: string, { correction, spent }: CorrectedSpend, pool: PlacedPool) {
  return { group, correction: shown(correction, pool), spent_usd: { ...spent } };
}

function shown(
  { id, member, period, usd, applied, by, note: why, at, undoneAt }: SpendCorrection,
  { partition }: PlacedPool,
) {
  return {
    id,
    partition,
    member,
    period,
    amount_usd: usd,
    applied_usd: { ...applied },
    by,
    note: why,
    at: new Date(at).toISOString(),
    undone_at: undoneAt === null ? null : new Date(undoneAt).toISOString(),
  };
}

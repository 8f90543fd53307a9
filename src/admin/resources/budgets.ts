import * as z from 'zod';
import { requireGroup } from './groups.ts';
import { requireMember } from './group-switches.ts';
import { invalid, route } from '../route.ts';
import { ProblemError, type AdminContext } from '../context.ts';
import { requirePools, unreachable } from '../pools.ts';
import { note } from '../change.ts';
import { type PlacedPool, ownPool } from '../../routing/pool.ts';
import { definedGroup } from '../../routing/implied-groups.ts';
import { type Directory, askPools, readDirectory } from '../../overview/pools.ts';
import { type NewCorrection, PERIODS } from '../../core/parts/spend.ts';
import type { CorrectedSpend, GroupRpc, SpendCorrection } from '../../contract/rpc/group-rpc.ts';

const budgetName = z
  .string()
  .min(1)
  .max(300)
  .describe('URL-encoded name of the group. Also accepts `key:ID` and `team:ID`.');

const correctionId = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,64}$/, 'expected 1 to 64 of letters, digits, dot, dash, underscore');

const usdOf = (description: string) => z.number().meta({ description, unit: 'USD' });

/** Maximum amount of one correction. */
const USD_MAX = 1_000_000_000;

const budgetPartition = z
  .string()
  .max(1_000)
  .nullable()
  .describe('Partition of the budget. null if the group is not split.');

const correctionSchema = z.object({
  id: z.string().describe('Id of the correction.'),
  partition: budgetPartition,
  member: z
    .string()
    .nullable()
    .describe('Member whose budget was corrected. null means the budget of the group.'),
  period: z.enum(PERIODS).describe('Shortest corrected period.'),
  amount_usd: usdOf('Requested amount. Negative amounts reduce the spend.'),
  applied_usd: z
    .object({
      hour: usdOf('Change of the hour.'),
      day: usdOf('Change of the day.'),
      month: usdOf('Change of the month.'),
    })
    .describe(
      'Applied changes. They may be smaller than requested, because spend never goes below 0. 0 after the correction was undone.',
    ),
  by: z.string().describe('Operator who made the correction.'),
  note: z.string().describe('Reason of the correction.'),
  at: z.iso.datetime().describe('Time of the correction.'),
  undone_at: z.iso
    .datetime()
    .nullable()
    .describe('Time at which it was undone. null if it still applies.'),
});

const correctedSchema = z.object({
  group: z.string().describe('Name of the group.'),
  correction: correctionSchema.describe('The correction.'),
  spent_usd: z
    .object({
      hour: usdOf('Spend in the current UTC hour.'),
      day: usdOf('Spend in the current UTC day.'),
      month: usdOf('Spend in the current UTC month.'),
    })
    .describe('Spend of the corrected budget after the correction.'),
});

export const BUDGET_ROUTES = {
  listCorrections: route('GET /groups/{name}/budget/corrections', {
    tag: 'groups',
    summary: 'List recent corrections of a budget',
    role: 'viewer',
    params: z.strictObject({ name: budgetName }),
    answers: {
      200: z.object({
        corrections: z
          .array(correctionSchema)
          .describe('Corrections, the newest first. At most 20 per partition.'),
        unreachable: z
          .array(
            z.object({
              partition: z.string().nullable().describe('Partition of the group.'),
              error: z.string().describe('Why it did not respond.'),
            }),
          )
          .describe('Pools that did not respond.'),
      }),
    },
    problems: [404],
  }).servedBy(async ({ context, params: { name } }) => {
    const directory = await readDirectory(context.env);
    const pools = budgetPools(directory, name);
    const { config } = directory;
    const asked = await askPools(context.env, config, pools, (pool) => pool.corrections());
    const all = asked.flatMap((one) =>
      'answer' in one ? one.answer.map((each) => shown(each, one.pool)) : [],
    );
    const corrections = all.toSorted((a, b) => (a.at < b.at ? 1 : -1));
    return { status: 200, body: { corrections, unreachable: unreachable(asked) } };
  }),

  correctBudget: route('POST /groups/{name}/budget/corrections', {
    tag: 'groups',
    summary: 'Correct the spend of the budget of a group, key or team',
    description:
      'Adds an amount to the spend, or subtracts it, in the current period and the longer ones. Calls that are settled in the meantime count as usual. `GET /costs` still reports the costs as they were charged.',
    role: 'admin',
    params: z.strictObject({ name: budgetName }),
    body: z.strictObject({
      amount_usd: z
        .number()
        .min(-USD_MAX)
        .max(USD_MAX)
        .refine((amount) => amount !== 0, 'expected an amount other than 0')
        .meta({
          description: 'Amount to add to the spend. Negative amounts are subtracted.',
          unit: 'USD',
        }),
      period: z
        .enum(PERIODS)
        .default('month')
        .describe(
          'Shortest period to correct. `hour` corrects the current hour, day and month, `day` the day and month, and `month` only the month.',
        ),
      partition: budgetPartition.optional().describe('Partition, if the group is split.'),
      member: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe('Member whose budget to correct. Absent means the budget of the group.'),
      note: z.string().trim().max(200).default('').describe('Reason for the audit log.'),
      id: correctionId
        .optional()
        .describe(
          'Id of the correction. A retry with the same id changes nothing. With another amount, period or member, it is a conflict. Defaults to a new id.',
        ),
    }),
    answers: { 200: correctedSchema },
    problems: [404, 409],
  }).servedBy(async ({ context, params: { name }, body }) => {
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
  }),

  undoCorrection: route('POST /groups/{name}/budget/corrections/{id}/undo', {
    tag: 'groups',
    summary: 'Undo a correction',
    description:
      'Idempotent. Removes the effect of the correction from the spend of the periods that are still current.',
    role: 'admin',
    params: z.strictObject({
      name: budgetName,
      id: correctionId.describe('Id of the correction.'),
    }),
    answers: { 200: correctedSchema },
    problems: [404],
  }).servedBy(async ({ context, params: { name, id } }) => {
    const directory = await readDirectory(context.env);
    const pool = await poolOfCorrection(context, directory, name, id);
    const answer = await askOne(context, directory, pool, (one) => one.undoCorrection(id));
    if (answer === null) throw unknownCorrection(name, id);
    return { status: 200, body: corrected(name, answer, pool) };
  }),
};

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

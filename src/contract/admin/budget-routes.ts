import * as z from 'zod';
import { PERIODS } from '../../core/parts/spend.ts';
import { routes } from './route.ts';

const name = z
  .string()
  .min(1)
  .max(300)
  .describe('Name of the group, encoded: also `key:ID` and `team:ID`.');
const id = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,64}$/, 'expected 1 to 64 of letters, digits, dot, dash, underscore');
const usd = (description: string) => z.number().meta({ description, unit: 'USD' });

/** Maximum amount of one correction. */
const USD_MAX = 1_000_000_000;

const partition = z
  .string()
  .max(1_000)
  .nullable()
  .describe('The partition whose budget it is. Null: the group is not split.');

const correctionSchema = z.object({
  id: z.string().describe('Id of the correction.'),
  partition,
  period: z.enum(PERIODS).describe('The shortest period that was corrected.'),
  amount_usd: usd('The amount that was asked for. Below 0: less was spent.'),
  applied_usd: z
    .object({
      hour: usd('In the hour.'),
      day: usd('In the day.'),
      month: usd('In the month.'),
    })
    .describe('The changes that were made. No amount goes below 0, so they may be smaller.'),
  by: z.string().describe('The operator.'),
  note: z.string().describe('The reason.'),
  at: z.iso.datetime().describe('When it was made.'),
  undone_at: z.iso.datetime().nullable().describe('When it was undone. Null: it holds.'),
});

const correctedSchema = z.object({
  group: z.string().describe('Name of the group.'),
  correction: correctionSchema.describe('The correction.'),
  spent_usd: z
    .object({
      hour: usd('In the current hour of UTC.'),
      day: usd('In the current day of UTC.'),
      month: usd('In the current month of UTC.'),
    })
    .describe('What counts as spent now.'),
});

/** Corrections of what budgets have spent. */
export const BUDGET_ROUTES = routes({
  listCorrections: {
    tag: 'groups',
    summary: 'The last corrections of what the budget of a group has spent',
    role: 'viewer',
    params: z.strictObject({ name }),
    answers: {
      200: z.object({
        corrections: z
          .array(correctionSchema)
          .describe('The last one first; at most 20 of each partition.'),
        unreachable: z
          .array(
            z.object({
              partition: z.string().nullable().describe('The partition.'),
              error: z.string().describe('Why it did not answer.'),
            }),
          )
          .describe('Pools that did not answer.'),
      }),
    },
    problems: [404],
  },
  correctBudget: {
    tag: 'groups',
    summary: 'Corrects what the budget of a group, key or team has spent',
    description:
      'Adds an amount to what was spent, or subtracts it, in the current period and the longer ones. Calls that are settled meanwhile count as usual. The costs by key, model and group stay as they were charged.',
    role: 'admin',
    params: z.strictObject({ name }),
    body: z.strictObject({
      amount_usd: z
        .number()
        .min(-USD_MAX)
        .max(USD_MAX)
        .refine((amount) => amount !== 0, 'expected an amount other than 0')
        .meta({
          description: 'The amount to add to what was spent. Below 0: it is subtracted.',
          unit: 'USD',
        }),
      period: z
        .enum(PERIODS)
        .default('month')
        .describe(
          'When the charge was made: `hour` corrects the current hour, day and month, `day` the day and month, `month` the month alone.',
        ),
      partition: partition
        .optional()
        .describe('The partition, of a group that is split. Absent: it has one pool.'),
      note: z.string().trim().max(200).default('').describe('The reason, for the audit log.'),
      id: id
        .optional()
        .describe(
          'Id of the correction: the same one again changes nothing, and is a conflict with another amount or period. Absent: a new one.',
        ),
    }),
    answers: { 200: correctedSchema },
    problems: [404, 409],
  },
  undoCorrection: {
    tag: 'groups',
    summary: 'Undoes a correction. The second time changes nothing.',
    description: 'Reverses what the correction changed, in the periods that are still current.',
    role: 'admin',
    params: z.strictObject({ name, id: id.describe('Id of the correction.') }),
    answers: { 200: correctedSchema },
    problems: [404],
  },
});

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
  member: z
    .string()
    .nullable()
    .describe('The member whose budget was corrected. Null: that of the group itself.'),
  period: z.enum(PERIODS).describe('The shortest period that was corrected.'),
  amount_usd: usd('The requested amount. Negative: less was spent.'),
  applied_usd: z
    .object({
      hour: usd('In the hour.'),
      day: usd('In the day.'),
      month: usd('In the month.'),
    })
    .describe(
      'The applied changes. Spend never goes below 0, so they may be smaller; 0 once the correction is undone.',
    ),
  by: z.string().describe('The operator.'),
  note: z.string().describe('The reason.'),
  at: z.iso.datetime().describe('When it was made.'),
  undone_at: z.iso.datetime().nullable().describe('When it was undone. Null: it is in force.'),
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
    .describe('The spend after the correction, in the corrected budget.'),
});

/** Corrections of the spend of budgets. */
export const BUDGET_ROUTES = routes({
  listCorrections: {
    tag: 'groups',
    summary: 'Recent corrections of the spend of a budget',
    role: 'viewer',
    params: z.strictObject({ name }),
    answers: {
      200: z.object({
        corrections: z
          .array(correctionSchema)
          .describe('Newest first; at most 20 of each partition.'),
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
    summary: 'Corrects the spend of the budget of a group, key or team',
    description:
      'Adds an amount to the spend, or subtracts it, in the current period and the longer ones. Calls that are settled meanwhile count as usual. The costs by key, model and group stay as they were charged.',
    role: 'admin',
    params: z.strictObject({ name }),
    body: z.strictObject({
      amount_usd: z
        .number()
        .min(-USD_MAX)
        .max(USD_MAX)
        .refine((amount) => amount !== 0, 'expected an amount other than 0')
        .meta({
          description: 'The amount to add to the spend. Negative: it is subtracted.',
          unit: 'USD',
        }),
      period: z
        .enum(PERIODS)
        .default('month')
        .describe(
          'When the charge was made: `hour` corrects the current hour, day and month, `day` the day and month, `month` only the month.',
        ),
      partition: partition
        .optional()
        .describe('The partition, if the group is split. Absent: the group has one pool.'),
      member: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe('The member, to correct its own budget. Absent: the budget of the group.'),
      note: z.string().trim().max(200).default('').describe('The reason, for the audit log.'),
      id: id
        .optional()
        .describe(
          'Id of the correction. Sending the same id again changes nothing; with another amount, period or member it is a conflict. Absent: a new id.',
        ),
    }),
    answers: { 200: correctedSchema },
    problems: [404, 409],
  },
  undoCorrection: {
    tag: 'groups',
    summary: 'Undoes a correction. Repeating it changes nothing.',
    description:
      'The spend of the periods that are still current is then what it would be without the correction.',
    role: 'admin',
    params: z.strictObject({ name, id: id.describe('Id of the correction.') }),
    answers: { 200: correctedSchema },
    problems: [404],
  },
});

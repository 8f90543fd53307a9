import * as z from 'zod';
import { PERIODS } from '../../core/parts/spend.ts';
import { routes } from './route.ts';

const name = z
  .string()
  .min(1)
  .max(300)
  .describe('URL-encoded name of the group. Also accepts `key:ID` and `team:ID`.');
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
  .describe('Partition of the budget. null if the group is not split.');

const correctionSchema = z.object({
  id: z.string().describe('Id of the correction.'),
  partition,
  member: z
    .string()
    .nullable()
    .describe('Member whose budget was corrected. null means the budget of the group.'),
  period: z.enum(PERIODS).describe('Shortest corrected period.'),
  amount_usd: usd('Requested amount. Negative amounts reduce the spend.'),
  applied_usd: z
    .object({
      hour: usd('Change of the hour.'),
      day: usd('Change of the day.'),
      month: usd('Change of the month.'),
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
      hour: usd('Spend in the current UTC hour.'),
      day: usd('Spend in the current UTC day.'),
      month: usd('Spend in the current UTC month.'),
    })
    .describe('Spend of the corrected budget after the correction.'),
});

export const BUDGET_ROUTES = routes({
  listCorrections: {
    tag: 'groups',
    summary: 'List recent corrections of a budget',
    role: 'viewer',
    params: z.strictObject({ name }),
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
  },
  correctBudget: {
    tag: 'groups',
    summary: 'Correct the spend of the budget of a group, key or team',
    description:
      'Adds an amount to the spend, or subtracts it, in the current period and the longer ones. Calls that are settled in the meantime count as usual. `GET /costs` still reports the costs as they were charged.',
    role: 'admin',
    params: z.strictObject({ name }),
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
      partition: partition.optional().describe('Partition, if the group is split.'),
      member: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe('Member whose budget to correct. Absent means the budget of the group.'),
      note: z.string().trim().max(200).default('').describe('Reason for the audit log.'),
      id: id
        .optional()
        .describe(
          'Id of the correction. A retry with the same id changes nothing. With another amount, period or member, it is a conflict. Defaults to a new id.',
        ),
    }),
    answers: { 200: correctedSchema },
    problems: [404, 409],
  },
  undoCorrection: {
    tag: 'groups',
    summary: 'Undo a correction',
    description:
      'Idempotent. Removes the effect of the correction from the spend of the periods that are still current.',
    role: 'admin',
    params: z.strictObject({ name, id: id.describe('Id of the correction.') }),
    answers: { 200: correctedSchema },
    problems: [404],
  },
});

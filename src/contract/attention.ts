import * as z from 'zod';
import { ATTENTION_RULES } from './attention-rules.ts';
import type { Frozen } from './frozen.ts';
import { REASON_NAMES } from './refusals.ts';

/** How long nothing must have been served for `nothing_served`, while calls fail, in milliseconds. */
export const NOTHING_SERVED_MS = 300_000;

/** Maximum entries of a list. */
export const ATTENTION_MAX = 500;

const attentionRule = z.enum(ATTENTION_RULES);

/** One thing that needs a person. */
const attentionSchema = z
  .object({
    rule: attentionRule.describe('The rule that holds, as in docs/operations.md.'),
    subject: z
      .object({
        kind: z
          .enum(['group', 'key', 'team', 'upstream', 'deployment', 'member'])
          .describe('Kind of what needs attention.'),
        id: z
          .string()
          .describe('Its name or id. For the deployment: the part of it, as in `configuration`.'),
      })
      .describe('What needs attention.'),
    reason: z
      .enum(REASON_NAMES)
      .exactOptional()
      .describe('Why Headgate refuses the calls. Absent: the entry is not about one reason.'),
    group: z.string().nullable().describe('The group to look at. null if there is none.'),
    since: z.iso.datetime().nullable().describe('Since when. null if that is not known.'),
    count: z
      .int()
      .min(0)
      .nullable()
      .describe('Number of calls, refusals or slots concerned. null if there is nothing to count.'),
    says: z.string().describe('One sentence: the cause first, then its effect.'),
    words: z
      .string()
      .nullable()
      .describe(
        'Message of the upstream, or of the error that callers got, shortened and without secrets. null if there is none.',
      ),
    advice: z.string().describe('What to do.'),
  })
  .describe('One thing that needs a person.');

export const attentionListSchema = z.object({
  at: z.iso.datetime().describe('When this was found.'),
  version: z.int().min(0).describe('Version of the configuration.'),
  attention: z.array(attentionSchema).max(ATTENTION_MAX).describe('The worst first.'),
  left_out: z.int().min(0).describe('Entries beyond the first 500.'),
});

export type Attention = Frozen<z.output<typeof attentionSchema>>;

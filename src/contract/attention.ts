import * as z from 'zod';
import { ATTENTION_RULES } from './attention-rules.ts';
import type { Frozen } from './frozen.ts';
import { REASON_NAMES } from './refusals.ts';

/** Time without a served call, while calls fail, after which `nothing_served` applies. */
export const NOTHING_SERVED_MS = 300_000;

export const ATTENTION_MAX = 500;

const attentionRule = z.enum(ATTENTION_RULES);

const attentionSchema = z
  .object({
    rule: attentionRule.describe('Rule of the condition, as in docs/alerts.md.'),
    subject: z
      .object({
        kind: z
          .enum(['group', 'key', 'team', 'upstream', 'deployment', 'member'])
          .describe('Kind of the subject.'),
        id: z
          .string()
          .describe(
            'Name or id of the subject. For the deployment, the affected part, such as `configuration`.',
          ),
      })
      .describe('Subject of the condition.'),
    reason: z
      .enum(REASON_NAMES)
      .exactOptional()
      .describe('Why Headgate rejects the calls. Absent if the entry is not about one reason.'),
    group: z.string().nullable().describe('Affected group. null if there is none.'),
    since: z.iso.datetime().nullable().describe('Start of the condition. null if it is unknown.'),
    count: z
      .int()
      .min(0)
      .nullable()
      .describe(
        'Number of affected calls, rejections or slots. null if there is nothing to count.',
      ),
    says: z.string().describe('One sentence: the cause, then its effect.'),
    words: z
      .string()
      .nullable()
      .describe(
        'Message of the upstream, or of the error that callers received, shortened and without secrets. null if there is none.',
      ),
    advice: z.string().describe('How to fix it.'),
  })
  .describe('A condition that needs an operator.');

export const attentionListSchema = z.object({
  at: z.iso.datetime().describe('Time at which the list was computed.'),
  version: z.int().min(0).describe('Version of the configuration.'),
  attention: z
    .array(attentionSchema)
    .max(ATTENTION_MAX)
    .describe('Open conditions, the worst first.'),
  left_out: z.int().min(0).describe('Number of entries beyond the first 500.'),
});

export type Attention = Frozen<z.output<typeof attentionSchema>>;

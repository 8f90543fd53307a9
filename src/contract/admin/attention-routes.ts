import * as z from 'zod';
import { attentionListSchema } from '../attention.ts';
import { ATTENTION_RULES } from '../attention-rules.ts';
import { routes } from './route.ts';

/** The list of what needs a person. */
export const ATTENTION_ROUTES = routes({
  getAttention: {
    tag: 'status',
    summary: 'Lists what needs a person, the worst first',
    description:
      'Groups that serve nothing, refused calls, spent budgets, ejected members, missing secrets, warnings of the configuration and more. The dashboard, `headgate doctor`, `headgate status`, the webhook and the metric `headgate_attention` show the same list. What each rule means: docs/operations.md.',
    role: 'viewer',
    query: z.strictObject({
      rule: z.enum(ATTENTION_RULES).optional().describe('Only entries of this rule.'),
    }),
    answers: { 200: attentionListSchema },
  },
});

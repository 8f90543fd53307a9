import * as z from 'zod';
import { attentionListSchema } from '../attention.ts';
import { ATTENTION_RULES } from '../attention-rules.ts';
import { routes } from './route.ts';

export const ATTENTION_ROUTES = routes({
  getAttention: {
    tag: 'status',
    summary: 'List the conditions that need attention, the worst first',
    description:
      'Lists groups that serve nothing, rejected calls, spent budgets, ejected members, missing secrets, configuration warnings and more. The dashboard, `headgate doctor`, `headgate status`, the webhook and the metric `headgate_attention` show the same list. docs/alerts.md describes each rule.',
    role: 'viewer',
    query: z.strictObject({
      rule: z.enum(ATTENTION_RULES).optional().describe('Return only entries of this rule.'),
    }),
    answers: { 200: attentionListSchema },
  },
});

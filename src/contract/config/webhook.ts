import * as z from 'zod';
import { WARNING_KINDS } from '../warnings.ts';

/** Kinds of messages: warnings of pools, and entries of what needs a person. */
const WEBHOOK_KINDS = [...WARNING_KINDS, 'attention'] as const;

/** A receiver of warnings, by the rules of Standard Webhooks, or of Slack. */
export const webhookSchema = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .max(2_000)
    .describe('Address that warnings are sent to, with https.'),
  secret: z
    .string()
    .regex(/^WEBHOOK_[A-Z0-9_]{1,50}$/, 'expected the name of a secret that begins with WEBHOOK_')
    .nullable()
    .default(null)
    .describe(
      'Name of the Worker secret that signs them, which begins with `WEBHOOK_`. Null: they are not signed, as Slack looks at no signature.',
    ),
  format: z
    .enum(['generic', 'slack'])
    .default('generic')
    .describe(
      'Shape of what is sent: `generic` as in docs/metrics.md, signed; `slack`: a `text`, as Slack, Mattermost and others take it.',
    ),
  kinds: z
    .array(z.enum(WEBHOOK_KINDS))
    .min(1)
    .max(WEBHOOK_KINDS.length)
    .nullable()
    .default(null)
    .describe(
      'Kinds of warnings that are sent, and `attention` for entries of what needs a person. Null: all; an entry that a warning announces anyway is then sent once, as that warning.',
    ),
});

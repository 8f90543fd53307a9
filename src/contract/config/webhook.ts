import * as z from 'zod';
import { WARNING_KINDS } from '../warnings.ts';

/** Kinds of messages: warnings of pools, and entries of the attention list. */
const WEBHOOK_KINDS = [...WARNING_KINDS, 'attention'] as const;

/** A receiver of warnings, in the format of Standard Webhooks or of Slack. */
export const webhookSchema = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .max(2_000)
    .describe('Address of the receiver, with https.'),
  secret: z
    .string()
    .regex(/^WEBHOOK_[A-Z0-9_]{1,50}$/, 'expected the name of a secret that begins with WEBHOOK_')
    .nullable()
    .default(null)
    .describe(
      'Name of the Worker secret that signs messages. It begins with `WEBHOOK_`. null means unsigned messages. Slack does not verify signatures.',
    ),
  format: z
    .enum(['generic', 'slack'])
    .default('generic')
    .describe(
      'Format of messages. `generic`: signed JSON, as in docs/alerts.md. `slack`: a `text` for Slack, Mattermost and others.',
    ),
  kinds: z
    .array(z.enum(WEBHOOK_KINDS))
    .min(1)
    .max(WEBHOOK_KINDS.length)
    .nullable()
    .default(null)
    .describe(
      'Kinds of warnings to send, and `attention` for entries of the attention list. null means all. A condition that has its own warning is then sent once, as that warning.',
    ),
});

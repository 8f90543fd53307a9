import * as z from 'zod';
import type { Frozen } from './frozen.ts';

/** One field that a change of the configuration changed. Hashes are hidden, and of a webhook's address all but the host. */
export const auditChangeSchema = z
  .object({
    path: z.string().describe('The field, as in `groups[openai-shared].limits.max_concurrency`.'),
    from: z
      .unknown()
      .optional()
      .describe('The value before. Absent: there was nothing. Hashes are shown as `(hidden)`.'),
    to: z.unknown().optional().describe('The value after. Absent: it was removed.'),
  })
  .describe('One field of the configuration that a change changes.');

export const auditEntrySchema = z
  .object({
    sequence: z.int().describe('Number of the entry; later ones have larger ones.'),
    at: z.iso.datetime().describe('When it was done.'),
    version: z
      .int()
      .min(0)
      .describe('Version of the configuration that the action made, or that it happened at.'),
    actor: z.string().describe('Who did it: `admin-token`, the id of an admin key, or `access:…`.'),
    action: z.string().describe('The action, as in `group openai-shared: pause`. Never a secret.'),
    changes: z
      .array(auditChangeSchema)
      .describe('The fields that it changed. Empty where no configuration was changed.'),
    changes_omitted: z.int().min(0).describe('Changes beyond those that are kept.'),
  })
  .describe('An entry of the audit log.');

export type AuditChange = Frozen<z.output<typeof auditChangeSchema>>;
export type AuditEntry = Frozen<z.output<typeof auditEntrySchema>>;

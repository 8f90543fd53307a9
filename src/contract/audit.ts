import * as z from 'zod';
import type { Frozen } from './frozen.ts';

/** One changed field of the configuration. Hashes are hidden, and webhook addresses are cut to their host. */
export const auditChangeSchema = z
  .object({
    path: z
      .string()
      .describe('Path of the field, such as `groups[openai-shared].limits.max_concurrency`.'),
    from: z
      .unknown()
      .optional()
      .describe(
        'Value before the change. Absent if there was none. Hashes are shown as `(hidden)`.',
      ),
    to: z.unknown().optional().describe('Value after the change. Absent if the field was removed.'),
  })
  .describe('One changed field of the configuration.');

export const auditEntrySchema = z
  .object({
    sequence: z.int().describe('Number of the entry. It increases with time.'),
    at: z.iso.datetime().describe('Time of the action.'),
    version: z
      .int()
      .min(0)
      .describe('Version of the configuration that the action created, or that was current then.'),
    actor: z.string().describe('Who acted: `admin-token`, the id of an admin key, or `access:…`.'),
    action: z
      .string()
      .describe('The action, such as `group openai-shared: pause`. It never contains a secret.'),
    changes: z
      .array(auditChangeSchema)
      .describe('Changed fields. Empty if the action did not change the configuration.'),
    changes_omitted: z.int().min(0).describe('Number of changes that were not stored.'),
  })
  .describe('An entry of the audit log.');

export type AuditChange = Frozen<z.output<typeof auditChangeSchema>>;
export type AuditEntry = Frozen<z.output<typeof auditEntrySchema>>;

import * as z from 'zod';

/** A field of a group with a temporary value. It reverts automatically. */
export const temporarySchema = z
  .object({
    field: z.string().describe('Path of the field, such as `limits.max_concurrency` or `paused`.'),
    from: z.unknown().optional().describe('Value to which it reverts. Absent if there was none.'),
    to: z.unknown().optional().describe('Temporary value. Absent if the field has none.'),
    until: z.iso.datetime().describe('Time at which it reverts, in UTC.'),
    actor: z.string().describe('Who made the change.'),
  })
  .describe('A field with a temporary value.');

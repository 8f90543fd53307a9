import * as z from 'zod';

/** A field of a group that has another value for a while, and goes back by itself. */
export const temporarySchema = z
  .object({
    field: z.string().describe('The field, as in `limits.max_concurrency` or `paused`.'),
    from: z
      .unknown()
      .optional()
      .describe('The value that it goes back to. Absent: there was nothing.'),
    to: z.unknown().optional().describe('The value until then. Absent: there is nothing.'),
    until: z.iso.datetime().describe('When it goes back, in UTC.'),
    actor: z.string().describe('Who set it.'),
  })
  .describe('A field that has another value for a while.');

import * as z from 'zod';

/** Maximum time for which something is changed, a month: what holds longer is no exception. */
export const FOR_S_MAX = 31 * 86_400;

const until = z.iso
  .datetime({ error: 'expected an instant in UTC like 2026-11-20T10:00:00Z' })
  .optional()
  .describe(
    'When it goes back by itself, in UTC; a month ahead at most. Absent: it stays, unless `for_s` is given.',
  );

const FOR_S = { description: 'The same from now on, in place of `until`.', unit: 's' };

/** Query of a change that may hold for a while. */
export const untilQuery = z.strictObject({
  until,
  for_s: z.coerce.number().int().min(1).max(FOR_S_MAX).optional().meta(FOR_S),
});

/** Body of the same, where the change itself needs none. */
export const untilSchema = z.strictObject({
  until,
  for_s: z.int().min(1).max(FOR_S_MAX).optional().meta(FOR_S),
});

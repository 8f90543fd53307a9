import * as z from 'zod';

/** Maximum duration of a temporary change: a month. */
export const FOR_S_MAX = 31 * 86_400;

const until = z.iso
  .datetime({ error: 'expected a UTC time such as 2026-11-20T10:00:00Z' })
  .optional()
  .describe(
    'Time at which the change reverts automatically, in UTC, at most a month ahead. Absent means that it is permanent, unless `for_s` is given.',
  );

const FOR_S = {
  description: 'Duration after which the change reverts, in place of `until`.',
  unit: 's',
};

export const untilQuery = z.strictObject({
  until,
  for_s: z.coerce.number().int().min(1).max(FOR_S_MAX).optional().meta(FOR_S),
});

/** Body of a change that can be temporary and has no other fields. */
export const untilSchema = z.strictObject({
  until,
  for_s: z.int().min(1).max(FOR_S_MAX).optional().meta(FOR_S),
});

import * as z from 'zod';
import { ProblemError, type FieldError } from './problem.ts';

/** An instant in a query: RFC 3339, or epoch milliseconds. */
export const queryInstant = z.union(
  [
    z.iso.datetime({ offset: true }).transform((text) => Date.parse(text)),
    z
      .string()
      .regex(/^\d{1,15}$/)
      .transform(Number),
  ],
  'expected RFC 3339, or epoch milliseconds',
);

/** The problem of a query that a route cannot go by. */
export function badQuery(errors: readonly FieldError[]): ProblemError {
  return new ProblemError(400, 'The query is not valid.', { errors });
}

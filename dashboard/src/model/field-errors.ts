import type * as z from 'zod';
import { explainIssues } from '../../../src/config/explain-issues.ts';
import type { FieldError } from '../../../src/config/field-error.ts';
import type { EditedDocument } from './document.ts';

export type { FieldError };

/** A valid document with all defaults filled in, or the errors of an invalid one. */
export type CheckedDocument<Schema extends z.ZodType> =
  | { readonly ok: true; readonly value: z.output<Schema> }
  | { readonly ok: false; readonly errors: readonly FieldError[] };

/** Checks a document with the schema of the server. Errors have the same messages. */
export function check<Schema extends z.ZodType>(
  schema: Schema,
  document: EditedDocument,
): CheckedDocument<Schema> {
  const parsed = schema.safeParse(document);
  if (parsed.success) return { ok: true, value: parsed.data };
  return { ok: false, errors: explainIssues(parsed.error, schema, document) };
}

function isAt(error: FieldError, path: string): boolean {
  const { path: at } = error;
  return at === path || at.startsWith(`${path}.`) || at.startsWith(`${path}[`);
}

/** Whether an error belongs to a touched field. The empty path means all fields. */
export function isTouched(error: FieldError, path: string): boolean {
  return path === '' || isAt(error, path);
}

/** Messages of one field. If the field has several parts, each message names its part. */
export function messagesAt(errors: readonly FieldError[], path: string): string[] {
  return errors
    .filter((error) => isAt(error, path))
    .map(({ path: at, message }) => {
      const place = placeOf(at.slice(path.length));
      return place === '' ? message : `${place}: ${message}`;
    });
}

/** Errors outside the fields of a form. */
export function elsewhere(
  errors: readonly FieldError[],
  paths: readonly string[],
): readonly FieldError[] {
  return errors.filter((error) => !paths.some((path) => isAt(error, path)));
}

/** Formats `[1].models` as `entry 2, models`. */
function placeOf(rest: string): string {
  const parts = rest.match(/\["[^"]*"\]|\[[^\]]*\]|[^.[\]]+/g) ?? [];
  return parts
    .map((part) => {
      const index = /^\[(\d+)\]$/.exec(part)?.[1];
      if (index !== undefined) return `entry ${Number(index) + 1}`;
      return part.replace(/^\[|\]$/g, '');
    })
    .join(', ');
}

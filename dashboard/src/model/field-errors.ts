import type * as z from 'zod';
import { explainIssues } from '../../../src/config/explain-issues.ts';
import type { FieldError } from '../../../src/config/field-error.ts';
import type { EditedDocument } from './document.ts';

/** Something that is wrong with a document, and where. */
export type { FieldError };

/** A document that is right, with every default filled in; or everything that is wrong with it. */
export type CheckedDocument<Schema extends z.ZodType> =
  | { readonly ok: true; readonly value: z.output<Schema> }
  | { readonly ok: false; readonly errors: readonly FieldError[] };

/** Checks by the schema that the server checks by, and says what is wrong in the same words. */
export function check<Schema extends z.ZodType>(
  schema: Schema,
  document: EditedDocument,
): CheckedDocument<Schema> {
  const parsed = schema.safeParse(document);
  if (parsed.success) return { ok: true, value: parsed.data };
  return { ok: false, errors: explainIssues(parsed.error, schema, document) };
}

/** Whether an error is about a field or a part of it. */
function isAt(error: FieldError, path: string): boolean {
  const { path: at } = error;
  return at === path || at.startsWith(`${path}.`) || at.startsWith(`${path}[`);
}

/** Whether an error is about a field that somebody touched; the empty path touches all. */
export function isTouched(error: FieldError, path: string): boolean {
  return path === '' || isAt(error, path);
}

/** Lists what is wrong with one field, with the place within it where it has several. */
export function messagesAt(errors: readonly FieldError[], path: string): string[] {
  return errors
    .filter((error) => isAt(error, path))
    .map(({ path: at, message }) => {
      const place = placeOf(at.slice(path.length));
      return place === '' ? message : `${place}: ${message}`;
    });
}

/** Errors that no field of a form shows. */
export function elsewhere(
  errors: readonly FieldError[],
  paths: readonly string[],
): readonly FieldError[] {
  return errors.filter((error) => !paths.some((path) => isAt(error, path)));
}

/** As in `entry 2, models`, of `[1].models`. */
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

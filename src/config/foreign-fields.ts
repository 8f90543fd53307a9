// Step 2, fields of other systems that are not of the type they should be. check-config.ts lists all steps.

import type * as z from 'zod';
import { explainIssues } from './explain-issues.ts';
import { below, type FieldError } from './field-error.ts';

/** Reads text that is a number, also one as `1_000`. Any other value stays as it is. */
export function numberIn(value: unknown): unknown {
  const isNumber =
    typeof value === 'string' && /^\s*[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[-+]?\d+)?\s*$/i.test(value);
  return isNumber ? Number(value.replaceAll('_', '')) : value;
}

/** Reads those fields of an object that are numbers written as text. */
export function withNumbers(value: unknown, names: readonly string[]): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]: [string, unknown]) => [
      name,
      names.includes(name) ? numberIn(inner) : inner,
    ]),
  );
}

/**
 * Parses a value without the parts that are wrong, if it can be read without them. All mistakes are listed in `omitted`.
 *
 * @param at Path of the value in the document.
 * @param spareAt Finds the part to leave out for a mistake at a path of the value. Null: it cannot be read without it.
 * @returns null for a value that cannot be read
 */
export function readWithoutWrong<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  at: string,
  omitted: FieldError[],
  spareAt: (path: readonly PropertyKey[]) => readonly PropertyKey[] | null,
): z.output<Schema> | null {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const errors = explainIssues(parsed.error, schema, value);
  omitted.push(...errors.map(({ path, message }) => ({ path: below(at, path), message })));
  let rest = value;
  for (const issue of parsed.error.issues) {
    const spare = spareAt(issue.path);
    if (spare === null) return null;
    rest = without(rest, spare);
  }
  const left = schema.safeParse(rest);
  return left.success ? left.data : null;
}

function without(value: unknown, [name, ...inside]: readonly PropertyKey[]): unknown {
  if (typeof value !== 'object' || value === null || name === undefined) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]: [string, unknown]) => {
      if (key !== name) return [[key, inner]];
      return inside.length === 0 ? [] : [[key, without(inner, inside)]];
    }),
  );
}

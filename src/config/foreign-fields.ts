import type * as z from 'zod';
import { explainIssues } from './explain-issues.ts';
import { below, type FieldError } from './field-error.ts';

/** Converts text that is a number, also one as `1_000`. Any other value stays as it is. */
export function numberIn(value: unknown): unknown {
  const isNumber =
    typeof value === 'string' && /^\s*[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[-+]?\d+)?\s*$/i.test(value);
  return isNumber ? Number(value.replaceAll('_', '')) : value;
}

/** Converts those fields of an object that are numbers written as text. */
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
 * Parses a value without its invalid parts, if that is possible. All errors are listed in `omitted`.
 *
 * @param at path of the value in the document
 * @param spareAt returns the part to remove for an error at a path of the value, or null if the value needs it
 * @returns null for a value that cannot be parsed
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

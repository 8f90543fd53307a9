import type { FieldError } from '../field-error.ts';

/** Finds entries of a list with the same value in a field that identifies them. */
export function duplicates<Field extends string>(
  list: string,
  field: Field,
  entries: readonly Readonly<Record<Field, string>>[],
): FieldError[] {
  const first = new Map<string, number>();
  return entries.flatMap((entry, index) => {
    const before = first.get(entry[field]);
    if (before !== undefined) {
      const message = `is the same as ${list}[${before}].${field}; each must be different`;
      return [{ path: `${list}[${index}].${field}`, message }];
    }
    first.set(entry[field], index);
    return [];
  });
}

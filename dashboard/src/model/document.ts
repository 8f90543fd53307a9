export { isSame, rebase } from '../../../src/config/rebase.ts';

/** A document as JSON has it, in the middle of being edited: it may be invalid. */
export type EditedDocument = Readonly<Record<string, unknown>>;

/** Reads what stands at a path like `limits.max_concurrency`. */
export function valueAt(document: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => partsOf(value)?.get(name), document);
}

/** The document with another value there; undefined takes the field out, so that its default holds. */
export function withValue(document: EditedDocument, path: string, value: unknown): EditedDocument {
  const [name = '', ...rest] = path.split('.');
  const parts = new Map(Object.entries(document));
  const inner =
    rest.length === 0
      ? value
      : withValue((parts.get(name) ?? {}) as EditedDocument, rest.join('.'), value);
  if (inner === undefined) parts.delete(name);
  else parts.set(name, inner);
  return Object.fromEntries(parts);
}

/** The parts of an object; null for lists and everything else. */
function partsOf(value: unknown): ReadonlyMap<string, unknown> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  return new Map(Object.entries(value));
}

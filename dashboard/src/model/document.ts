export { isSame, rebase } from '../../../src/config/document-changes.ts';

/** A JSON document that is being edited, and may be invalid. */
export type EditedDocument = Readonly<Record<string, unknown>>;

/** Reads the value at a path such as `limits.max_concurrency`. */
export function valueAt(document: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => partsOf(value)?.get(name), document);
}

/** Returns the document with another value at a path. undefined removes the field, so that its default applies. */
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

/** Fields of an object. null for lists and other values. */
function partsOf(value: unknown): ReadonlyMap<string, unknown> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  return new Map(Object.entries(value));
}

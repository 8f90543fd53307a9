/** A document as JSON has it, in the middle of being edited: it may be invalid. */
export type Document = Readonly<Record<string, unknown>>;

/** Reads what stands at a path like `limits.max_concurrency`. */
export function valueAt(document: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => partsOf(value)?.get(name), document);
}

/** The document with another value there; undefined takes the field out, so that its default holds. */
export function withValue(document: Document, path: string, value: unknown): Document {
  const [name = '', ...rest] = path.split('.');
  const parts = new Map(Object.entries(document));
  const inner =
    rest.length === 0
      ? value
      : withValue((parts.get(name) ?? {}) as Document, rest.join('.'), value);
  if (inner === undefined) parts.delete(name);
  else parts.set(name, inner);
  return Object.fromEntries(parts);
}

/** Whether two values are the same JSON, whatever the order of their fields. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, at) => isSame(item, b[at]));
  }
  const [left, right] = [partsOf(a), partsOf(b)];
  if (left === null || right === null || left.size !== right.size) return false;
  return [...left].every(([name, part]) => right.has(name) && isSame(part, right.get(name)));
}

/** A field that two people changed, each in another way. */
export interface Clash {
  readonly path: string;
  readonly theirs: unknown;
  readonly mine: unknown;
}

/**
 * Puts my changes of `base` on top of theirs, field by field. Where both changed the same field, mine
 * holds, and it is listed. Lists count as one field.
 */
export function rebase(
  base: unknown,
  mine: unknown,
  theirs: unknown,
  path = '',
): { readonly value: unknown; readonly clashes: readonly Clash[] } {
  if (isSame(base, mine)) return { value: theirs, clashes: [] };
  if (isSame(base, theirs) || isSame(mine, theirs)) return { value: mine, clashes: [] };
  const [left, middle, right] = [partsOf(base), partsOf(mine), partsOf(theirs)];
  if (left === null || middle === null || right === null) {
    return { value: mine, clashes: [{ path, theirs, mine }] };
  }
  const clashes: Clash[] = [];
  const merged: [string, unknown][] = [];
  for (const name of new Set([...right.keys(), ...middle.keys()])) {
    const inner = path === '' ? name : `${path}.${name}`;
    const part = rebase(left.get(name), middle.get(name), right.get(name), inner);
    if (part.value !== undefined) merged.push([name, part.value]);
    clashes.push(...part.clashes);
  }
  return { value: Object.fromEntries(merged), clashes };
}

/** The parts of an object; null for lists and everything else. */
function partsOf(value: unknown): ReadonlyMap<string, unknown> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  return new Map(Object.entries(value));
}

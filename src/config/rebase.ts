import { below, namedParts } from './field-paths.ts';

/** Whether two values are the same JSON, apart from the order of fields. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, at) => isSame(item, b[at]));
  }
  const [left, right] = [fieldsOf(a), fieldsOf(b)];
  if (left === null || right === null || left.size !== right.size) return false;
  return [...left].every(([name, part]) => right.has(name) && isSame(part, right.get(name)));
}

/** A field that both sides changed to different values. */
interface Clash {
  readonly path: string;
  readonly theirs: unknown;
  readonly mine: unknown;
}

interface Rebased {
  readonly value: unknown;
  readonly clashes: readonly Clash[];
}

/**
 * Applies my changes of `base` to theirs, field by field. If both sides changed a field, `prefer` decides, and the
 * field is listed as a clash. Entries of lists are identified by name, and other lists count as one field.
 */
export function rebase(
  base: unknown,
  mine: unknown,
  theirs: unknown,
  prefer: 'mine' | 'theirs' = 'mine',
  path = '',
): Rebased {
  if (isSame(base, mine)) return { value: theirs, clashes: [] };
  if (isSame(base, theirs) || isSame(mine, theirs)) return { value: mine, clashes: [] };
  const [left, middle, right] = [base, mine, theirs].map((value) => namedParts(value, path));
  const isAlike = left?.isList === middle?.isList && left?.isList === right?.isList;
  if (!left || !middle || !right || !isAlike) {
    return { value: prefer === 'mine' ? mine : theirs, clashes: [{ path, theirs, mine }] };
  }
  const clashes: Clash[] = [];
  const merged: [string, unknown][] = [];
  for (const name of inOrder(keysOf(left), keysOf(middle), keysOf(right))) {
    const inner = below(path, name, left.isList);
    const [own, was, now] = [middle, left, right].map(({ parts }) => parts.get(name));
    const part = rebase(was, own, now, prefer, inner);
    if (part.value !== undefined) merged.push([name, part.value]);
    clashes.push(...part.clashes);
  }
  const value = left.isList ? merged.map(([, part]) => part) : Object.fromEntries(merged);
  return { value, clashes };
}

/**
 * Returns the names of both sides in their order, or in mine if I changed it. A name of one side follows its neighbour.
 */
function inOrder(
  base: readonly string[],
  mine: readonly string[],
  theirs: readonly string[],
): string[] {
  const isMoved = !isSame(those(base, mine), those(mine, base));
  const [first, second] = isMoved ? [mine, theirs] : [theirs, mine];
  const all = [...first];
  const known = new Set(first);
  for (const [at, name] of second.entries()) {
    if (known.has(name)) continue;
    known.add(name);
    const before = second[at - 1];
    all.splice(before === undefined ? 0 : all.indexOf(before) + 1, 0, name);
  }
  return all;
}

/** Returns the names that are also in another list. */
function those(names: readonly string[], others: readonly string[]): string[] {
  const among = new Set(others);
  return names.filter((name) => among.has(name));
}

function keysOf({ parts }: { readonly parts: ReadonlyMap<string, unknown> }): string[] {
  return [...parts.keys()];
}

/** Returns the fields of an object. null for any other value. */
function fieldsOf(value: unknown): ReadonlyMap<string, unknown> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  return new Map(Object.entries(value));
}

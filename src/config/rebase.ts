import { below, namedParts } from './field-paths.ts';

/** Tells whether two values are the same JSON, whatever the order of their fields. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, at) => isSame(item, b[at]));
  }
  const [left, right] = [fieldsOf(a), fieldsOf(b)];
  if (left === null || right === null || left.size !== right.size) return false;
  return [...left].every(([name, part]) => right.has(name) && isSame(part, right.get(name)));
}

/** A field that two people changed, each in another way. */
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
 * Puts my changes of `base` on top of theirs, field by field. Where both changed the same field, that of `prefer` holds,
 * and it is listed. Lists of things with names are told apart by these; other lists count as one field.
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

/** Names of both sides in their order, or in mine where I changed it; what one side alone has comes behind its neighbour. */
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

/** Picks the names that are among others. */
function those(names: readonly string[], others: readonly string[]): string[] {
  const among = new Set(others);
  return names.filter((name) => among.has(name));
}

function keysOf({ parts }: { readonly parts: ReadonlyMap<string, unknown> }): string[] {
  return [...parts.keys()];
}

/** The fields of an object; null for lists and everything else. */
function fieldsOf(value: unknown): ReadonlyMap<string, unknown> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  return new Map(Object.entries(value));
}

import { memberIdOf, type MemberConfig } from '../contract/config/members.ts';

/** Path to a field: names of fields and of entries in lists, as in `['members', 'openai', 'enabled']`. */
export type FieldPath = readonly string[];

/** One field that differs between two documents. undefined means absent. */
export interface FieldDifference {
  readonly path: FieldPath;
  /** The path for people, as in `members[openai].enabled`. */
  readonly text: string;
  readonly from: unknown;
  readonly to: unknown;
}

/** Yields the fields that differ, as deep as both sides have the same parts. */
export function* fieldsBetween(
  from: unknown,
  to: unknown,
  path: FieldPath = [],
  text = '',
): Generator<FieldDifference> {
  if (from === to || JSON.stringify(from) === JSON.stringify(to)) return;
  const [left, right] = [namedParts(from, text), namedParts(to, text)];
  if (left === null || right === null || left.isList !== right.isList) {
    yield { path, text, from, to };
    return;
  }
  for (const name of new Set([...left.parts.keys(), ...right.parts.keys()])) {
    const inner = below(text, name, left.isList);
    yield* fieldsBetween(left.parts.get(name), right.parts.get(name), [...path, name], inner);
  }
}

/** Returns a field. undefined if it is absent. */
export function fieldAt(document: unknown, path: FieldPath, text = ''): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return document;
  const parts = namedParts(document, text);
  if (parts === null) return undefined;
  return fieldAt(parts.parts.get(name), rest, below(text, name, parts.isList));
}

/** Sets a field, or removes it for undefined. A document without such a place stays as it is. */
export function withFieldAt(document: unknown, path: FieldPath, to: unknown, text = ''): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return to;
  const found = namedParts(document, text);
  if (found === null) return document;
  const parts = new Map(found.parts);
  const inner = withFieldAt(parts.get(name), rest, to, below(text, name, found.isList));
  if (inner === undefined) parts.delete(name);
  else parts.set(name, inner);
  return found.isList ? [...parts.values()] : Object.fromEntries(parts);
}

/** Formats a path for people, in a document that has it. */
export function pathText(document: unknown, path: FieldPath, text = ''): string {
  const [name, ...rest] = path;
  if (name === undefined) return text;
  const parts = namedParts(document, text);
  const inner = below(text, name, parts?.isList === true);
  return pathText(parts?.parts.get(name), rest, inner);
}

/** Formats the path of a part for people. */
export function below(text: string, name: string, isInList: boolean): string {
  if (isInList) return `${text}[${name}]`;
  return text === '' ? name : `${text}.${name}`;
}

/** Splits an object, or a list of entries with distinct names. null if the value has no such parts. */
export function namedParts(
  value: unknown,
  path: string,
): { readonly isList: boolean; readonly parts: ReadonlyMap<string, unknown> } | null {
  if (typeof value !== 'object' || value === null) return null;
  if (!Array.isArray(value)) return { isList: false, parts: new Map(Object.entries(value)) };
  const names = value.map(/(^|\.)members$/.test(path) ? memberNameOf : nameOf);
  if (names.includes(null) || new Set(names).size < names.length) return null;
  return { isList: true, parts: new Map(value.map((item, at) => [names[at] ?? '', item])) };
}

function nameOf(item: unknown): string | null {
  const { name, id } = Object(item) as { readonly name?: unknown; readonly id?: unknown };
  const own = name ?? id;
  return typeof own === 'string' ? own : null;
}

/** Returns the id of a member. In the editor of the dashboard, the member may still be incomplete. */
function memberNameOf(item: unknown): string | null {
  const { upstream, secret = '' } = Object(item) as Partial<Record<string, unknown>>;
  if (typeof upstream !== 'string' || typeof secret !== 'string') return nameOf(item);
  return memberIdOf(item as MemberConfig);
}

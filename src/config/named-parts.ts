import { memberIdOf, type MemberConfig } from '../contract/config/members.ts';

/** Takes apart an object, or a list of things with names. Null: it is to be shown as a whole. */
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

/** Tells a member apart by its id. It may be one that somebody is about to type. */
function memberNameOf(item: unknown): string | null {
  const { upstream, secret = '' } = Object(item) as Partial<Record<string, unknown>>;
  if (typeof upstream !== 'string' || typeof secret !== 'string') return nameOf(item);
  return memberIdOf(item as MemberConfig);
}

import { memberIdOf, type MemberConfig } from '../contract/config/members.ts';
import type { AuditChange } from '../contract/history.ts';
import type { Config, GatewayKeyConfig, GroupConfig } from '../contract/config/config.ts';
import { ticked } from './field-error.ts';

/**
 * Changes of documents: compared and combined field by field, undone, and those of a canary alone. Entries of a list
 * are found by what identifies them, so their order does not matter.
 */

/** Path to a field: names of fields and of entries in lists, as in `['members', 'openai', 'enabled']`. */
type FieldPath = readonly string[];

/** One field that differs between two documents. undefined means absent. */
interface FieldDifference {
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
function below(text: string, name: string, isInList: boolean): string {
  if (isInList) return `${text}[${name}]`;
  return text === '' ? name : `${text}.${name}`;
}

/** Splits an object, or a list of entries with distinct names. null if the value has no such parts. */
function namedParts(
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

/** Maximum changes of one entry that are stored. The rest is counted. */
const CHANGES_MAX = 100;

/** Maximum characters of one value, and of an entry. A database row is limited to 2 MB. */
const VALUE_CHARACTERS_MAX = 4_000;
const ENTRY_CHARACTERS_MAX = 64_000;

/** Fields whose value is never stored. */
const HIDDEN_FIELDS = new Set(['hash']);
const HIDDEN = '(hidden)';

/** Field of a receiver's address. Its path often contains a credential for sending to it. */
const ADDRESS_FIELD = 'url';

/** Returns the differences between two documents by field. Entries of lists are identified by name or id. */
export function changesBetween(
  before: unknown,
  next: unknown,
): { readonly changes: readonly AuditChange[]; readonly omitted: number } {
  const all = [...fieldsBetween(before, next)];
  const changes: AuditChange[] = [];
  let characters = 0;
  for (const change of all.slice(0, CHANGES_MAX).map(shownChange)) {
    characters += JSON.stringify(change).length;
    if (characters > ENTRY_CHARACTERS_MAX) break;
    changes.push(change);
  }
  return { changes, omitted: all.length - changes.length };
}

function shownChange({ text, from, to }: FieldDifference): AuditChange {
  const field = /(\w+)$/.exec(text)?.[1] ?? '';
  return {
    path: text,
    ...(from === undefined ? {} : { from: shown(from, field) }),
    ...(to === undefined ? {} : { to: shown(to, field) }),
  };
}

/** Returns a value as it is stored: without hidden parts, and with limited length. */
function shown(value: unknown, field: string): unknown {
  const text = JSON.stringify(value, (name, inner: unknown) =>
    typeof inner === 'string' ? shownText(inner, name === '' ? field : name) : inner,
  );
  return text.length > VALUE_CHARACTERS_MAX ? `(${text.length} characters)` : JSON.parse(text);
}

function shownText(text: string, field: string): string {
  if (HIDDEN_FIELDS.has(field)) return HIDDEN;
  return field === ADDRESS_FIELD && URL.canParse(text) ? `${new URL(text).origin}/${HIDDEN}` : text;
}

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

interface UndoConflict {
  readonly path: string;
  /** The value that the undo restores. Absent if there was none. */
  readonly was?: unknown;
  /** The current value. Absent if there is none. */
  readonly now?: unknown;
}

export interface RolledBack {
  readonly config: Config;
  /** Sentences about what stays as it is. */
  readonly notes: readonly string[];
  readonly conflicts: readonly UndoConflict[];
}

/** Restores a version, except which keys exist and whether they are valid. */
export function restored(present: Config, then: Config): RolledBack {
  const config = withDoorsOf(present, settingsOf(then));
  return { config, notes: doorNotes(then, present), conflicts: [] };
}

/**
 * Undoes one change, from `before` to `after`, except fields that have been changed since. `isAll` undoes those fields
 * too.
 */
export function undone(present: Config, before: Config, after: Config, isAll: boolean): RolledBack {
  const [base, mine, theirs] = [after, before, present].map(settingsOf);
  const { value, clashes } = rebase(base, mine, theirs, isAll ? 'mine' : 'theirs');
  // The cast is sound: the merged value has the fields of a configuration, and is checked as one later.
  const config = withDoorsOf(present, value as RestorableSettings);
  return { config, notes: doorNotes(before, after), conflicts: clashes.map(reported) };
}

/** Whether a change only affected which keys exist and whether they are valid, so that nothing can be undone. */
export function isOfDoorsAlone(before: Config, after: Config): boolean {
  return isSame(settingsOf(before), settingsOf(after));
}

/** Fields that decide whether a key is valid. */
const DOOR_FIELDS = ['hash', 'created_at', 'expires_at', 'revoked_at', 'previous'] as const;

type DoorField = (typeof DOOR_FIELDS)[number];
type KeySettings = Omit<GatewayKeyConfig, DoorField>;
type RestorableSettings = Omit<Config, 'keys' | 'admin_keys'> & {
  readonly keys: readonly KeySettings[];
};

/** Returns what a rollback restores: everything except which keys exist and whether they are valid. */
function settingsOf({ admin_keys: _adminKeys, keys, ...rest }: Config): RestorableSettings {
  return { ...rest, keys: keys.map(keySettings) };
}

function keySettings(key: GatewayKeyConfig): KeySettings {
  const { hash: _h, created_at: _c, expires_at: _e, revoked_at: _r, previous: _p, ...rest } = key;
  return rest;
}

/** Applies settings to the existing keys. No key is restored, removed, extended or made valid again. */
function withDoorsOf(present: Config, settings: RestorableSettings): Config {
  const wanted = new Map(settings.keys.map((key) => [key.id, key]));
  const keys = present.keys.map((key) => ({ ...key, ...wanted.get(key.id) }));
  return { ...present, ...settings, keys, admin_keys: present.admin_keys };
}

/** Describes changes of keys that are not rolled back. */
function doorNotes(then: Config, now: Config): string[] {
  const [were, are] = [then, now].map(({ keys }) => new Map(keys.map((key) => [key.id, key])));
  const isOther = (key: GatewayKeyConfig): boolean => {
    const was = were?.get(key.id);
    return was !== undefined && DOOR_FIELDS.some((field) => !isSame(was[field], key[field]));
  };
  const made = now.keys.filter(({ id }) => were?.has(id) === false);
  const deleted = then.keys.filter(({ id }) => are?.has(id) === false);
  return [
    ...about('created since then remain', made),
    ...about('deleted since then remain deleted', deleted),
    ...about(
      'rotated, revoked or given a new expiry since then are left unchanged',
      now.keys.filter(isOther),
    ),
    ...(isSame(then.admin_keys, now.admin_keys) ? [] : ['Admin keys are not rolled back.']),
  ];
}

/** Maximum keys in a sentence. */
const NAMED_MAX = 20;

function about(what: string, keys: readonly { readonly id: string }[]): string[] {
  if (keys.length === 0) return [];
  const named = keys.slice(0, NAMED_MAX).map(({ id }) => id);
  const more = keys.length > named.length ? ` and ${keys.length - named.length} more` : '';
  return [`Keys ${what}: ${ticked(named)}${more}.`];
}

/** Formats a conflict as the audit log formats a change. Hashes and addresses are hidden. */
function reported({
  path,
  mine,
  theirs,
}: ReturnType<typeof rebase>['clashes'][number]): UndoConflict {
  const field = /(\w+)$/.exec(path)?.[1] ?? '';
  return {
    path,
    ...(mine === undefined ? {} : { was: shown(mine, field) }),
    ...(theirs === undefined ? {} : { now: shown(theirs, field) }),
  };
}

export const CANARY_GROUP_PREFIX = 'canary-';

/** Prefix of the models that these groups match. No other call requests such a model. */
export const CANARY_MODEL_PREFIX = 'headgate-canary-';

/** Whether a canary created a group, by its name and its match. */
export function isCanaryGroup({
  name,
  match,
}: {
  readonly name: string;
  readonly match: { readonly models: readonly string[] };
}): boolean {
  return (
    name.startsWith(CANARY_GROUP_PREFIX) &&
    match.models.some((model) => model.startsWith(CANARY_MODEL_PREFIX))
  );
}

/** Whether a change affects groups of a canary only, so that it is not a version to roll back to. */
export function isOfCanaryAlone(before: Config, next: Config): boolean {
  if (isSame(before.groups.filter(isCanaryGroup), next.groups.filter(isCanaryGroup))) return false;
  const others = (config: Config): Config => ({ ...config, groups: othersOf(config.groups) });
  return isSame(others(before), others(next));
}

function othersOf(groups: readonly GroupConfig[]): GroupConfig[] {
  return groups.filter((group) => !isCanaryGroup(group));
}

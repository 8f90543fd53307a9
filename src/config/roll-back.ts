import { ticked } from './field-error.ts';
import type { Config, GatewayKeyConfig } from '../contract/config/config.ts';
import { shown, isSame, rebase } from './document-changes.ts';

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

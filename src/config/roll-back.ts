import type { Config, GatewayKeyConfig } from '../contract/config/config.ts';
import { shown } from './changes-between.ts';
import { isSame, rebase } from './rebase.ts';

/** A field of a change that was changed again since. */
interface UndoConflict {
  readonly path: string;
  /** The value that the undo brings back. Absent: there was nothing. */
  readonly was?: unknown;
  /** The value now. Absent: there is nothing. */
  readonly now?: unknown;
}

/** A configuration on the way back. */
export interface RolledBack {
  readonly config: Config;
  /** Sentences on what stays as it is. */
  readonly notes: readonly string[];
  readonly conflicts: readonly UndoConflict[];
}

/** Puts a version in the place of the configuration: all of it but who may come in. */
export function restored(present: Config, then: Config): RolledBack {
  const config = withDoorsOf(present, settingsOf(then));
  return { config, notes: doorNotes(then, present), conflicts: [] };
}

/**
 * Takes one change back, from `before` to `after`, and leaves alone what was changed since; or takes that back too, where
 * `isAll` says so.
 */
export function undone(present: Config, before: Config, after: Config, isAll: boolean): RolledBack {
  const [base, mine, theirs] = [after, before, present].map(settingsOf);
  const { value, clashes } = rebase(base, mine, theirs, isAll ? 'mine' : 'theirs');
  // The cast is sound: what is merged has the fields of a configuration, and is checked as one afterwards.
  const config = withDoorsOf(present, value as RestorableSettings);
  return { config, notes: doorNotes(before, after), conflicts: clashes.map(reported) };
}

/** Tells whether a change changed nothing but who may come in, so that nothing of it can be taken back. */
export function isOfDoorsAlone(before: Config, after: Config): boolean {
  return isSame(settingsOf(before), settingsOf(after));
}

/** Fields that decide whether a key opens anything. */
const DOOR_FIELDS = ['hash', 'created_at', 'expires_at', 'revoked_at', 'previous'] as const;

type DoorField = (typeof DOOR_FIELDS)[number];
type KeySettings = Omit<GatewayKeyConfig, DoorField>;
type RestorableSettings = Omit<Config, 'keys' | 'admin_keys'> & {
  readonly keys: readonly KeySettings[];
};

/** Picks what goes back: everything but which keys there are, and whether they open anything. */
function settingsOf({ admin_keys: _adminKeys, keys, ...rest }: Config): RestorableSettings {
  return { ...rest, keys: keys.map(keySettings) };
}

function keySettings(key: GatewayKeyConfig): KeySettings {
  const { hash: _h, created_at: _c, expires_at: _e, revoked_at: _r, previous: _p, ...rest } = key;
  return rest;
}

/** Puts settings on the keys that there are: none comes back, none goes, and none opens for longer or again. */
function withDoorsOf(present: Config, settings: RestorableSettings): Config {
  const wanted = new Map(settings.keys.map((key) => [key.id, key]));
  const keys = present.keys.map((key) => ({ ...key, ...wanted.get(key.id) }));
  return { ...present, ...settings, keys, admin_keys: present.admin_keys };
}

/** Words what was changed about who may come in, of which nothing goes back. */
function doorNotes(then: Config, now: Config): string[] {
  const [were, are] = [then, now].map(({ keys }) => new Map(keys.map((key) => [key.id, key])));
  const isOther = (key: GatewayKeyConfig): boolean => {
    const was = were?.get(key.id);
    return was !== undefined && DOOR_FIELDS.some((field) => !isSame(was[field], key[field]));
  };
  const made = now.keys.filter(({ id }) => were?.has(id) === false);
  const deleted = then.keys.filter(({ id }) => are?.has(id) === false);
  return [
    ...about('made since, which stay', made),
    ...about('deleted since, which stay deleted', deleted),
    ...about(
      'rotated, revoked or given another end since, which stay so',
      now.keys.filter(isOther),
    ),
    ...(isSame(then.admin_keys, now.admin_keys)
      ? []
      : ['Admin keys stay as they are now: none comes back, and none goes.']),
  ];
}

/** Maximum of keys that a sentence names. */
const NAMED_MAX = 20;

function about(what: string, keys: readonly { readonly id: string }[]): string[] {
  if (keys.length === 0) return [];
  const named = keys.slice(0, NAMED_MAX).map(({ id }) => id);
  const more = keys.length > named.length ? ` and ${keys.length - named.length} more` : '';
  return [`Keys ${what}: ${named.join(', ')}${more}.`];
}

/** Words a conflict as the audit log words a change: hashes and addresses are hidden. */
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

import { fieldAt, isSame, pathText, withFieldAt } from '../config/document-changes.ts';
import { configSchema, type Config } from '../contract/config/config.ts';
import type { TemporaryField, TemporaryOrder } from '../contract/rpc/directory-rpc.ts';
import { settingsOf, withSettings } from '../routing/implied-groups.ts';
import { checkConfig, type CheckOptions } from '../config/check-config.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';

/**
 * `temporary (group_name, path, was, value, until, actor, ended)`: fields that revert automatically. `path` is a JSON
 * list of names. `was` and `value` are JSON, or null if the field was not set. `ended` is the reason why a field will
 * not be reverted.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS temporary (group_name TEXT NOT NULL, path TEXT NOT NULL, was TEXT,
  value TEXT, until INTEGER NOT NULL, actor TEXT NOT NULL, ended TEXT,
  PRIMARY KEY (group_name, path)) WITHOUT ROWID`;

/** A temporary field. `ended` is the reason why it will not be reverted, or null if it will. */
export interface TemporaryEntry extends TemporaryField {
  readonly ended: string | null;
}

/** Fields with a temporary value, one row each. All methods are synchronous, so each turn is one transaction. */
export class TemporaryList {
  readonly #sql: SqlStorage;
  readonly #all = new Map<string, TemporaryEntry>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(TABLE);
    for (const row of this.#read()) this.#all.set(keyOf(row), row);
  }

  /** Fields that will be reverted. */
  get live(): TemporaryEntry[] {
    return [...this.#all.values()].filter(({ ended }) => ended === null);
  }

  /** When the first field is due, or null if there is none. */
  get firstUntil(): number | null {
    const all = [...this.#all.values()].map(({ until }) => until);
    return all.length === 0 ? null : all.reduce((least, one) => Math.min(least, one));
  }

  due(now: number): TemporaryEntry[] {
    return [...this.#all.values()].filter(({ until }) => until <= now);
  }

  /** Applies the duration that a change sets for fields. Returns whether anything changed. */
  order({ group, until, fields, named }: TemporaryOrder, actor: string): boolean {
    let isChanged = false;
    for (const field of until === null ? [] : fields) {
      const known = this.#liveAt(group, field.path);
      // A second change reverts to the value from before the first.
      const { was } = known ?? field;
      const next = { ...field, was, group, until: until ?? 0, actor, ended: null };
      if (isSame(was, field.value)) this.#delete(next);
      else this.#put(next);
      isChanged = true;
    }
    for (const path of named) {
      const known = this.#liveAt(group, path);
      if (known === null || known.until === until) continue;
      if (until === null) this.#delete(known);
      else this.#put({ ...known, until, actor });
      isChanged = true;
    }
    return isChanged;
  }

  /** Marks fields that were changed permanently since, so that they are not reverted. */
  follow(config: Config): void {
    for (const one of this.live) {
      const settings = settingsOf(config, one.group);
      const now = fieldAt(settings, one.path);
      if (settings === null) this.#put({ ...one, ended: 'the group was deleted' });
      else if (isSame(now, one.value)) continue;
      else if (isSame(now, one.was)) this.#delete(one);
      else this.#put({ ...one, ended: 'it was changed since' });
    }
  }

  isUnchanged(all: readonly TemporaryEntry[]): boolean {
    return all.every((one) => this.#all.get(keyOf(one)) === one);
  }

  remove(all: readonly TemporaryEntry[]): void {
    for (const one of all) this.#delete(one);
  }

  #liveAt(group: string, path: readonly string[]): TemporaryEntry | null {
    const known = this.#all.get(keyOf({ group, path }));
    return known?.ended === null ? known : null;
  }

  #put(one: TemporaryEntry): void {
    this.#all.set(keyOf(one), one);
    this.#sql.exec(
      `INSERT OR REPLACE INTO temporary (group_name, path, was, value, until, actor, ended)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
      one.group,
      JSON.stringify(one.path),
      one.was === undefined ? null : JSON.stringify(one.was),
      one.value === undefined ? null : JSON.stringify(one.value),
      Math.round(one.until),
      one.actor,
      one.ended,
    );
  }

  #delete(one: Pick<TemporaryEntry, 'group' | 'path'>): void {
    this.#all.delete(keyOf(one));
    this.#sql.exec(
      'DELETE FROM temporary WHERE group_name = ? AND path = ?',
      one.group,
      JSON.stringify(one.path),
    );
  }

  #read(): TemporaryEntry[] {
    return this.#sql
      .exec<{
        group_name: string;
        path: string;
        was: string | null;
        value: string | null;
        until: number;
        actor: string;
        ended: string | null;
      }>('SELECT group_name, path, was, value, until, actor, ended FROM temporary')
      .toArray()
      .map(({ group_name: group, path, was, value, ...rest }) => ({
        ...rest,
        group,
        // The cast is sound: only `#put` writes the column.
        path: JSON.parse(path) as string[],
        ...(was === null ? {} : { was: JSON.parse(was) as unknown }),
        ...(value === null ? {} : { value: JSON.parse(value) as unknown }),
      }));
  }
}

function keyOf({ group, path }: Pick<TemporaryEntry, 'group' | 'path'>): string {
  return JSON.stringify([group, ...path]);
}

/** Actor of the directory's own changes. No admin key can have this id. */
export const OWN_ACTOR = 'headgate:directory';

export interface RevertedField {
  /** The new configuration, or null if no field is reverted. */
  readonly config: Config | null;
  /** Text for the audit log. */
  readonly action: string;
  /** Reverted fields, as text. */
  readonly back: readonly string[];
  /** Fields that are not reverted, each with its reason. */
  readonly stays: readonly string[];
}

/** Reverts fields of one group that still have their temporary value. */
export function revertFields(
  config: Config,
  due: readonly [TemporaryEntry, ...TemporaryEntry[]],
  options: CheckOptions,
): RevertedField {
  const [{ group }] = due;
  const settings = settingsOf(config, group);
  const named = (one: TemporaryEntry): string => pathText(settings, one.path);
  const over = due.filter(({ ended }) => ended === null && settings !== null);
  const stays = due
    .filter((one) => !over.includes(one))
    .map((one) => `${named(one)}: ${one.ended ?? 'the group was deleted'}`);
  if (over.length === 0) return reported(group, null, [], stays);
  const next = over.reduce<unknown>((to, one) => withFieldAt(to, one.path, one.was), settings);
  const wanted = withSettings(config, group, next);
  const wrong = problemOf(wanted, options);
  if (wrong !== null) {
    return reported(group, null, [], [...stays, ...over.map((one) => `${named(one)}: ${wrong}`)]);
  }
  return reported(group, wanted, over.map(named), stays);
}

function reported(
  group: string,
  config: Config | null,
  back: readonly string[],
  stays: readonly string[],
): RevertedField {
  const parts = [
    back.length === 0 ? '' : `temporary change ended, reverted ${back.join(', ')}`,
    stays.length === 0 ? '' : `temporary change ended, not reverted: ${stays.join('; ')}`,
  ].filter((part) => part !== '');
  return { config, action: `group ${group}: ${parts.join('. ')}`, back, stays };
}

/** Returns why a configuration is invalid, or null if it is valid. */
function problemOf(config: Config, options: CheckOptions): string | null {
  const parsed = configSchema.safeParse(config);
  if (!parsed.success) return 'the configuration would be invalid';
  const [first] = checkConfig(config, BUILT_IN_UPSTREAMS, options).errors;
  return first === undefined ? null : `${first.path} ${first.message}`;
}

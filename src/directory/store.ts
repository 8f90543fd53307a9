import { configSchema, type Config } from '../contract/config/config.ts';
import type {
  ChangedAt,
  VersionInfo,
  TemporaryField,
  AuditPage,
  AuditQuery,
} from '../contract/rpc/directory-rpc.ts';
import type { AuditEntry } from '../contract/history.ts';

/** What the directory stores: the configuration and its versions, the audit log, and when to wake. */

/**
 * The directory's rows, except those of `PoolList` and `AuditLog`. The tables are `WITHOUT ROWID`, so that an insert
 * writes one row instead of two.
 *
 * - `secrets (name, value)`: 32 random bytes in base64 each, created when first needed. `fingerprint_key` never
 *   changes, because fingerprints in `match.keys` and partitions depend on it. The key for sessions of the admin API
 *   is derived from `session_key` and `ADMIN_TOKEN`.
 * - `configuration (id = 0, version, routing_version, body, changed_at)`: the whole configuration as JSON.
 *   `changed_at` holds the versions that affected each group (`ChangedAt`). Without a row the version is 0.
 */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS configuration (id INTEGER PRIMARY KEY CHECK (id = 0),
     version INTEGER NOT NULL, routing_version INTEGER NOT NULL, body TEXT NOT NULL,
     changed_at TEXT) WITHOUT ROWID`,
];

/** The configuration at one version, and the version since which routing is unchanged. */
interface StoredConfig {
  readonly version: number;
  readonly routingVersion: number;
  readonly changedAt: ChangedAt;
  readonly config: Config;
}

/** Reads and writes the directory's rows. All methods are synchronous, so each turn is one transaction. */
export class DirectoryStore {
  readonly #sql: SqlStorage;
  readonly fingerprintKey: string;
  #current: StoredConfig;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    for (const table of TABLES) sql.exec(table);
    this.fingerprintKey = this.#secret('fingerprint_key');
    this.#current = this.#loadConfig();
  }

  get current(): StoredConfig {
    return this.#current;
  }

  /** Stored half of the key that signs sessions of the admin API. */
  get sessionKey(): string {
    return this.#secret('session_key');
  }

  write(next: StoredConfig): void {
    this.#sql.exec(
      `INSERT OR REPLACE INTO configuration (id, version, routing_version, body, changed_at)
       VALUES (0, ?, ?, ?, ?)`,
      next.version,
      next.routingVersion,
      JSON.stringify(next.config),
      JSON.stringify(next.changedAt),
    );
    this.#current = next;
  }

  #secret(name: string): string {
    const found = this.#sql
      .exec<{ value: string }>(`SELECT value FROM secrets WHERE name = ?`, name)
      .toArray()[0];
    if (found !== undefined) return found.value;
    const value = crypto.getRandomValues(new Uint8Array(32)).toBase64();
    this.#sql.exec(`INSERT INTO secrets (name, value) VALUES (?, ?)`, name, value);
    return value;
  }

  #loadConfig(): StoredConfig {
    const row = this.#sql
      .exec<{
        version: number;
        routing_version: number;
        body: string;
        changed_at: string;
      }>(`SELECT version, routing_version, body, changed_at FROM configuration`)
      .toArray()[0];
    if (row === undefined) {
      const changedAt = { everywhere: 0, groups: {} };
      return { version: 0, routingVersion: 0, changedAt, config: configSchema.parse({}) };
    }
    return {
      version: row.version,
      routingVersion: row.routing_version,
      // The casts are sound: only `write` writes the columns.
      changedAt: JSON.parse(row.changed_at) as ChangedAt,
      config: JSON.parse(row.body) as Config,
    };
  }
}

/**
 * `versions (version, at, actor, action, body, temporary)`: the last versions of the configuration. Each is complete
 * and packed with gzip, so that it can be read on its own. `temporary` lists the fields with temporary values as JSON,
 * or is null if there are none. `of_canary` is 1 if the change affected only groups of a canary.
 */
const VERSIONS_TABLE = `CREATE TABLE IF NOT EXISTS versions (version INTEGER PRIMARY KEY, at TEXT NOT NULL,
  actor TEXT NOT NULL, action TEXT NOT NULL, body BLOB NOT NULL, temporary TEXT,
  of_canary INTEGER NOT NULL DEFAULT 0)`;

/**
 * Maximum length of `temporary`. A row is limited to 2 MB, of which `body` may take most. A longer list is not stored.
 */
const TEMPORARY_CHARACTERS_MAX = 100_000;

/** Number of previous versions that are kept, without those of canaries. */
export const VERSIONS_MAX = 50;

/** A packed configuration. Packing is asynchronous, so it is done before the synchronous turn of a change. */
export type Packed = ArrayBuffer;

export async function packed(config: Config): Promise<Packed> {
  const stream = new Blob([JSON.stringify(config)]).stream();
  return new Response(stream.pipeThrough(new CompressionStream('gzip'))).arrayBuffer();
}

export class VersionList {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(VERSIONS_TABLE);
  }

  /**
   * Stores a version and deletes the oldest. Of consecutive canary versions only the last is kept, because it is the
   * state to which an undo of the next change returns.
   */
  add(
    { version, at, actor, action, isOfCanary = false }: VersionInfo & { isOfCanary?: boolean },
    body: Packed,
    temporary: readonly TemporaryField[],
  ): void {
    this.#sql.exec(
      `INSERT OR REPLACE INTO versions (version, at, actor, action, body, temporary, of_canary)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
      version,
      at,
      actor,
      action,
      body,
      textOf(temporary),
      isOfCanary ? 1 : 0,
    );
    if (isOfCanary) {
      const before = version - 1;
      this.#sql.exec('DELETE FROM versions WHERE version = ? AND of_canary = 1', before);
      return;
    }
    this.#sql.exec(
      `DELETE FROM versions WHERE version <
         (SELECT version FROM versions WHERE of_canary = 0 ORDER BY version DESC LIMIT 1 OFFSET ?)`,
      VERSIONS_MAX,
    );
  }

  setTemporary(version: number, temporary: readonly TemporaryField[]): void {
    this.#sql.exec(
      'UPDATE versions SET temporary = ? WHERE version = ?',
      textOf(temporary),
      version,
    );
  }

  temporaryAt(version: number): TemporaryField[] {
    const [row] = this.#sql
      .exec<{ temporary: string | null }>(
        'SELECT temporary FROM versions WHERE version = ?',
        version,
      )
      .toArray();
    // The cast is sound: only `textOf` writes the column.
    return JSON.parse(row?.temporary ?? '[]') as TemporaryField[];
  }

  /** Lists the versions, newest first. */
  list(): VersionInfo[] {
    return this.#sql
      .exec<{ version: number; at: string; actor: string; action: string }>(
        'SELECT version, at, actor, action FROM versions ORDER BY version DESC',
      )
      .toArray();
  }

  /** Returns a version, or null if it is not kept. */
  async at(version: number): Promise<Config | null> {
    const [row] = this.#sql
      .exec<{ body: ArrayBuffer }>('SELECT body FROM versions WHERE version = ?', version)
      .toArray();
    if (row === undefined) return null;
    const stream = new Blob([row.body]).stream().pipeThrough(new DecompressionStream('gzip'));
    // The cast is sound: only `packed` creates the column's values.
    return (await new Response(stream).json()) as Config;
  }
}

function textOf(temporary: readonly TemporaryField[]): string | null {
  if (temporary.length === 0) return null;
  const text = JSON.stringify(temporary);
  return text.length > TEMPORARY_CHARACTERS_MAX ? null : text;
}

/**
 * - `audit_log (sequence, at, version, actor, action, changes)`: one row per change or action, with its actor.
 *   `changes` is JSON, and `omitted` is the number of changes that it leaves out.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS audit_log (sequence INTEGER PRIMARY KEY, at TEXT NOT NULL,
  version INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, changes TEXT NOT NULL,
  omitted INTEGER NOT NULL)`;

/** Maximum entries and their maximum age. The oldest are deleted first. */
export const AUDIT_MAX = 2_000;
const AUDIT_MS = 90 * 86_400_000;

/** The audit log. All methods are synchronous, so each turn is one transaction. */
export class AuditLog {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(TABLE);
  }

  add({
    at,
    version,
    actor,
    action,
    changes,
    changes_omitted,
  }: Omit<AuditEntry, 'sequence'>): void {
    this.#sql.exec(
      `INSERT INTO audit_log (at, version, actor, action, changes, omitted)
       VALUES (?, ?, ?, ?, ?, ?)`,
      at,
      version,
      actor,
      action,
      JSON.stringify(changes),
      changes_omitted,
    );
    this.#sql.exec(
      `DELETE FROM audit_log
       WHERE sequence <= (SELECT MAX(sequence) FROM audit_log) - ? OR at < ?`,
      AUDIT_MAX,
      new Date(Date.parse(at) - AUDIT_MS).toISOString(),
    );
  }

  /** Lists the entries that match the query, newest first. */
  page({ limit, before, actor, action, path, since, until }: AuditQuery): AuditPage {
    const rows = this.#sql
      .exec<{
        sequence: number;
        at: string;
        version: number;
        actor: string;
        action: string;
        changes: string;
        omitted: number;
      }>(
        `SELECT sequence, at, version, actor, action, changes, omitted FROM audit_log
         WHERE sequence < ?1 AND (?2 IS NULL OR actor = ?2)
           AND (?3 IS NULL OR substr(action, 1, length(?3)) = ?3)
           AND at >= ?4 AND at < ?5 AND (?6 IS NULL OR instr(changes, ?6) > 0)
         ORDER BY sequence DESC LIMIT ?7`,
        before ?? Number.MAX_SAFE_INTEGER,
        actor ?? null,
        action ?? null,
        since ?? '',
        until ?? '~', // sorts after every digit
        path === undefined ? null : JSON.stringify({ path }).slice(1, -2),
        limit + 1,
      )
      .toArray();
    const entries = rows.slice(0, limit).map(({ changes, omitted, ...row }) => ({
      ...row,
      // The cast is sound: only `add` writes the column.
      changes: changesAt(JSON.parse(changes) as AuditEntry['changes'], path),
      changes_omitted: omitted,
    }));
    return { entries, next: rows.length > limit ? (entries.at(-1)?.sequence ?? null) : null };
  }
}

/** Returns the changes at or below a path, or all if there is no path. */
function changesAt(
  changes: AuditEntry['changes'],
  path: string | undefined,
): AuditEntry['changes'] {
  if (path === undefined) return changes;
  return changes.filter((change) => change.path === path || change.path.startsWith(`${path}.`));
}

export interface Alarm {
  /** Epoch milliseconds. */
  set(at: number): void;
  clear(): void;
}

/** Delay after which the alarm counts as lost. An overdue alarm may never fire. */
const LATE_MS = 3_000;

/** Shares the one alarm of an object among several users. It fires at the earliest requested time. */
export class Alarms {
  readonly #storage: Pick<DurableObjectStorage, 'setAlarm' | 'deleteAlarm'>;
  readonly #wanted = new Map<string, number>();
  #armedAt = Infinity;

  constructor(storage: Pick<DurableObjectStorage, 'setAlarm' | 'deleteAlarm'>) {
    this.#storage = storage;
  }

  of(user: string): Alarm {
    return {
      set: (at) => {
        this.#wanted.set(user, at);
        this.#arm();
      },
      clear: () => {
        if (this.#wanted.delete(user)) this.#arm();
      },
    };
  }

  /** Sets the alarm again if it was lost. */
  ensure(): void {
    if (this.#armedAt < Date.now() - LATE_MS) this.#arm();
  }

  #arm(): void {
    const first = Math.min(...this.#wanted.values());
    this.#armedAt = Math.max(first, Date.now());
    const armed =
      first === Infinity ? this.#storage.deleteAlarm() : this.#storage.setAlarm(this.#armedAt);
    armed.catch(() => {});
  }
}

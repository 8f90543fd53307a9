import { configSchema, type Config } from '../contract/config/config.ts';
import type { ChangedAt, VersionInfo, TemporaryField } from '../contract/rpc/directory-rpc.ts';

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
export interface StoredConfig {
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

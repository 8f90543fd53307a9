import { configSchema, type Config } from '../contract/config/config.ts';
import type { ChangedAt } from '../contract/rpc/directory-rpc.ts';

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

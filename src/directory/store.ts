import { configSchema, type Config } from '../contract/config.ts';
import type { AuditEntry, ListedPool } from '../contract/directory-rpc.ts';
import type { PlacedPool } from '../contract/pool.ts';
import { poolName } from '../contract/pool-name.ts';

/**
 * The directory's rows. Every table is `WITHOUT ROWID`: an insert then writes one row instead of two.
 *
 * - `secrets (name, value)`: one row, `fingerprint_key`: 32 random bytes in base64, made at the first
 *   start and never changed, because fingerprints in `match.keys` and partitions depend on it.
 * - `configuration (id = 0, version, routing_version, body)`: the whole configuration as JSON. No row:
 *   never written, version 0.
 * - `audit (version, at, actor, action)`: one row per version, the newest 10,000 of them.
 * - `pools (group_name, object_name, jurisdiction, partition_key)`: the pools that changes are pushed
 *   to. `jurisdiction` is empty for none; `partition_key` is null for a group's own object.
 */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS configuration (id INTEGER PRIMARY KEY CHECK (id = 0),
     version INTEGER NOT NULL, routing_version INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS audit (version INTEGER PRIMARY KEY, at TEXT NOT NULL,
     actor TEXT NOT NULL, action TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS pools (group_name TEXT NOT NULL, object_name TEXT NOT NULL,
     jurisdiction TEXT NOT NULL, partition_key TEXT,
     PRIMARY KEY (group_name, object_name, jurisdiction)) WITHOUT ROWID`,
];

/** The most audit entries that are kept; the oldest go first. */
export const AUDIT_MAX = 10_000;

/** The most partitions of one group that are listed. Those beyond work, but status does not show them. */
export const PARTITIONS_LISTED_MAX = 1_000;

/** The configuration at one version, and since when calls take the way that they take. */
export interface StoredConfig {
  readonly version: number;
  readonly routingVersion: number;
  readonly config: Config;
}

type Jurisdiction = NonNullable<PlacedPool['jurisdiction']>;

/** Reads and writes the directory's rows. All of it is synchronous, so a turn is one transaction. */
export class DirectoryStore {
  readonly #sql: SqlStorage;
  readonly fingerprintKey: string;
  #current: StoredConfig;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    for (const table of TABLES) sql.exec(table);
    this.fingerprintKey = this.#loadFingerprintKey();
    this.#current = this.#loadConfig();
  }

  get current(): StoredConfig {
    return this.#current;
  }

  /** Writes the next version and its audit entry. */
  write(next: StoredConfig, entry: AuditEntry): void {
    this.#sql.exec(
      `INSERT OR REPLACE INTO configuration (id, version, routing_version, body) VALUES (0, ?, ?, ?)`,
      next.version,
      next.routingVersion,
      JSON.stringify(next.config),
    );
    this.#sql.exec(
      `INSERT OR REPLACE INTO audit (version, at, actor, action) VALUES (?, ?, ?, ?)`,
      entry.version,
      entry.at,
      entry.actor,
      entry.action,
    );
    this.#sql.exec(`DELETE FROM audit WHERE version <= ?`, next.version - AUDIT_MAX);
    this.#current = next;
  }

  /** The newest entries, newest first. */
  audit(limit: number): AuditEntry[] {
    return this.#sql
      .exec<{ at: string; version: number; actor: string; action: string }>(
        `SELECT at, version, actor, action FROM audit ORDER BY version DESC LIMIT ?`,
        limit,
      )
      .toArray();
  }

  /** Lists a pool; a second time, or beyond the bound of its group, it changes nothing. */
  list(pool: PlacedPool): void {
    const { count } = this.#sql
      .exec<{ count: number }>(
        `SELECT COUNT(*) AS count FROM pools WHERE group_name = ?`,
        pool.group,
      )
      .one();
    if (count >= PARTITIONS_LISTED_MAX) return;
    this.#sql.exec(
      `INSERT OR IGNORE INTO pools (group_name, object_name, jurisdiction, partition_key)
       VALUES (?, ?, ?, ?)`,
      pool.group,
      poolName(pool.group, pool.partition),
      pool.jurisdiction ?? '',
      pool.partition,
    );
  }

  /**
   * Takes a pool off the list. A pool does not know its jurisdiction, so where its group was moved to
   * another one (`current`), the rows of the old one go first: only a retired pool asks for this.
   */
  unlist(pool: ListedPool, current: string | null): void {
    const name = poolName(pool.group, pool.partition);
    const retired = this.#sql.exec(
      `DELETE FROM pools WHERE group_name = ? AND object_name = ? AND jurisdiction <> ?`,
      pool.group,
      name,
      current ?? '',
    );
    // Rows are counted as the statement runs, and a statement without results has run already.
    if (retired.rowsWritten > 0) return;
    this.#sql.exec(`DELETE FROM pools WHERE group_name = ? AND object_name = ?`, pool.group, name);
  }

  /** Takes exactly this pool off the list. */
  drop(pool: PlacedPool): void {
    this.#sql.exec(
      `DELETE FROM pools WHERE group_name = ? AND object_name = ? AND jurisdiction = ?`,
      pool.group,
      poolName(pool.group, pool.partition),
      pool.jurisdiction ?? '',
    );
  }

  pools(): PlacedPool[] {
    return this.#sql
      .exec<{ group_name: string; jurisdiction: string; partition_key: string | null }>(
        `SELECT group_name, jurisdiction, partition_key FROM pools`,
      )
      .toArray()
      .map((row) => ({
        group: row.group_name,
        partition: row.partition_key,
        // The cast is sound: the column is written from a configuration's field alone.
        jurisdiction: row.jurisdiction === '' ? null : (row.jurisdiction as Jurisdiction),
      }));
  }

  #loadFingerprintKey(): string {
    const found = this.#sql
      .exec<{ value: string }>(`SELECT value FROM secrets WHERE name = 'fingerprint_key'`)
      .toArray()[0];
    if (found !== undefined) return found.value;
    const bytes = crypto.getRandomValues(new Uint8Array(32));
    const value = btoa(String.fromCharCode(...bytes));
    this.#sql.exec(`INSERT INTO secrets (name, value) VALUES ('fingerprint_key', ?)`, value);
    return value;
  }

  #loadConfig(): StoredConfig {
    const row = this.#sql
      .exec<{ version: number; routing_version: number; body: string }>(
        `SELECT version, routing_version, body FROM configuration`,
      )
      .toArray()[0];
    if (row === undefined) {
      return { version: 0, routingVersion: 0, config: configSchema.parse({}) };
    }
    return {
      version: row.version,
      routingVersion: row.routing_version,
      config: readConfig(JSON.parse(row.body)),
    };
  }
}

/**
 * Parsing fills in the defaults of fields that are newer than the row. A row that does not parse was
 * written by a newer version and checked by it; every reader ignores the fields that it does not know.
 */
function readConfig(stored: unknown): Config {
  const parsed = configSchema.safeParse(stored);
  return parsed.success ? parsed.data : (stored as Config);
}

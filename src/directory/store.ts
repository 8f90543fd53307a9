import { configSchema, type Config } from '../contract/config.ts';
import type { AuditEntry } from '../contract/directory-rpc.ts';

/**
 * The directory's rows, but for those of `PoolList`. Nearly every table is `WITHOUT ROWID`: an insert then writes one row instead of two.
 *
 * - `secrets (name, value)`: one row, `fingerprint_key`: 32 random bytes in base64, made at the first
 *   start and never changed, because fingerprints in `match.keys` and partitions depend on it.
 * - `configuration (id = 0, version, routing_version, body)`: the whole configuration as JSON. No row:
 *   never written, version 0.
 * - `audit (version, at, actor, action)`: one row per version, the newest 10,000 of them.
 * - `notes (sequence, version, at, actor, action)`: what was done without a new version, as many.
 */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS configuration (id INTEGER PRIMARY KEY CHECK (id = 0),
     version INTEGER NOT NULL, routing_version INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS audit (version INTEGER PRIMARY KEY, at TEXT NOT NULL,
     actor TEXT NOT NULL, action TEXT NOT NULL) WITHOUT ROWID`,
  // Its key is the row id itself, so that it is counted up.
  `CREATE TABLE IF NOT EXISTS notes (sequence INTEGER PRIMARY KEY, version INTEGER NOT NULL,
     at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL)`,
];

/** The most audit entries that are kept; the oldest go first. */
export const AUDIT_MAX = 10_000;

/** The configuration at one version, and since when calls take the way that they take. */
export interface StoredConfig {
  readonly version: number;
  readonly routingVersion: number;
  readonly config: Config;
}

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

  /** Writes down what was done without a new version. */
  note({ version, at, actor, action }: AuditEntry): void {
    this.#sql.exec(
      `INSERT INTO notes (version, at, actor, action) VALUES (?, ?, ?, ?)`,
      version,
      at,
      actor,
      action,
    );
    this.#sql.exec(
      `DELETE FROM notes WHERE sequence <= (SELECT MAX(sequence) FROM notes) - ?`,
      AUDIT_MAX,
    );
  }

  /** The newest entries, newest first. */
  audit(limit: number): AuditEntry[] {
    // Notes of a version came after the change that made it; the clock may have stepped back.
    return this.#sql
      .exec<{ at: string; version: number; actor: string; action: string }>(
        `SELECT at, version, actor, action FROM (
           SELECT at, version, actor, action, 0 AS sequence FROM audit
           UNION ALL SELECT at, version, actor, action, sequence FROM notes)
         ORDER BY version DESC, sequence DESC LIMIT ?`,
        limit,
      )
      .toArray();
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

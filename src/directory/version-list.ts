import { withDefaults } from '../config/stored-snapshot.ts';
import type { Config } from '../contract/config/config.ts';
import type { VersionInfo } from '../contract/rpc/directory-rpc.ts';

/**
 * `versions (version, at, actor, action, body)`: the configuration at each of the last versions, whole and packed with
 * gzip, so that each can be read without any other.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS versions (version INTEGER PRIMARY KEY, at TEXT NOT NULL,
  actor TEXT NOT NULL, action TEXT NOT NULL, body BLOB NOT NULL)`;

/** How many versions before the one in force are kept. */
export const VERSIONS_MAX = 50;

/** A document as it is written: packed beforehand, because to pack takes several turns, and a change takes one. */
export type Packed = ArrayBuffer;

/** Packs a configuration. */
export async function packed(config: Config): Promise<Packed> {
  const stream = new Blob([JSON.stringify(config)]).stream();
  return new Response(stream.pipeThrough(new CompressionStream('gzip'))).arrayBuffer();
}

/** The last versions of the configuration. */
export class VersionList {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(TABLE);
  }

  has(version: number): boolean {
    return (
      this.#sql.exec('SELECT version FROM versions WHERE version = ?', version).toArray().length > 0
    );
  }

  /** Writes a version, and lets the oldest go. */
  add({ version, at, actor, action }: VersionInfo, body: Packed): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO versions (version, at, actor, action, body) VALUES (?, ?, ?, ?, ?)',
      version,
      at,
      actor,
      action,
      body,
    );
    this.#sql.exec('DELETE FROM versions WHERE version < ?', version - VERSIONS_MAX);
  }

  /** Lists them, the newest first. */
  list(): VersionInfo[] {
    return this.#sql
      .exec<{ version: number; at: string; actor: string; action: string }>(
        'SELECT version, at, actor, action FROM versions ORDER BY version DESC',
      )
      .toArray();
  }

  /** Reads one, with the defaults of fields that are newer. Null: it is not kept. */
  async at(version: number): Promise<Config | null> {
    const [row] = this.#sql
      .exec<{ body: ArrayBuffer }>('SELECT body FROM versions WHERE version = ?', version)
      .toArray();
    if (row === undefined) return null;
    const stream = new Blob([row.body]).stream().pipeThrough(new DecompressionStream('gzip'));
    return withDefaults(await new Response(stream).json());
  }
}

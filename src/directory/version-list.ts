import type { Config } from '../contract/config/config.ts';
import type { TemporaryField } from '../contract/rpc/temporary-rpc.ts';
import type { VersionInfo } from '../contract/rpc/directory-rpc.ts';

/**
 * `versions (version, at, actor, action, body, temporary)`: the last versions of the configuration. Each is complete
 * and packed with gzip, so that it can be read on its own. `temporary` lists the fields with temporary values as JSON,
 * or is null if there are none. `of_canary` is 1 if the change affected only groups of a canary.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS versions (version INTEGER PRIMARY KEY, at TEXT NOT NULL,
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
    sql.exec(TABLE);
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

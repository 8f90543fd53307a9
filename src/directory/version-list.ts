import { withDefaults } from '../config/stored-snapshot.ts';
import type { Config } from '../contract/config/config.ts';
import type { TemporaryField } from '../contract/rpc/temporary-rpc.ts';
import type { VersionInfo } from '../contract/rpc/directory-rpc.ts';

/**
 * `versions (version, at, actor, action, body, temporary)`: the configuration at each of the last versions, whole and
 * packed with gzip, so that each can be read without any other; and which fields had another value for a while, as JSON,
 * null where none had. `of_canary`: 1 where the change touched groups of a canary alone.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS versions (version INTEGER PRIMARY KEY, at TEXT NOT NULL,
  actor TEXT NOT NULL, action TEXT NOT NULL, body BLOB NOT NULL, temporary TEXT,
  of_canary INTEGER NOT NULL DEFAULT 0)`;

/** Maximum characters of `temporary`: a row ends at 2 MB, of which `body` may take most. More is not kept. */
const TEMPORARY_CHARACTERS_MAX = 100_000;

/** How many versions before the one in force are kept. Those of canaries do not count. */
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
    this.#takeOver();
  }

  has(version: number): boolean {
    return (
      this.#sql.exec('SELECT version FROM versions WHERE version = ?', version).toArray().length > 0
    );
  }

  /**
   * Writes a version, and removes the oldest. Of consecutive versions of a canary only the last is kept: it is the state
   * before the next change, which can be undone.
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

  /** Takes over the table of a release that counted the versions of canaries like all others. */
  #takeOver(): void {
    const columns = this.#sql.exec<{ name: string }>('PRAGMA table_info(versions)').toArray();
    if (columns.some(({ name }) => name === 'of_canary')) return;
    this.#sql.exec('ALTER TABLE versions ADD COLUMN of_canary INTEGER NOT NULL DEFAULT 0');
  }

  /** Writes that fields of a version hold for another time. */
  setTemporary(version: number, temporary: readonly TemporaryField[]): void {
    this.#sql.exec(
      'UPDATE versions SET temporary = ? WHERE version = ?',
      textOf(temporary),
      version,
    );
  }

  /** Reads which fields of a version had another value for a while. */
  temporaryAt(version: number): TemporaryField[] {
    const [row] = this.#sql
      .exec<{ temporary: string | null }>(
        'SELECT temporary FROM versions WHERE version = ?',
        version,
      )
      .toArray();
    // The cast is sound: only `textOf` makes the column.
    return JSON.parse(row?.temporary ?? '[]') as TemporaryField[];
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

function textOf(temporary: readonly TemporaryField[]): string | null {
  if (temporary.length === 0) return null;
  const text = JSON.stringify(temporary);
  return text.length > TEMPORARY_CHARACTERS_MAX ? null : text;
}

import type { AuditPage, AuditQuery } from '../contract/rpc/directory-rpc.ts';
import type { AuditEntry } from '../contract/history.ts';

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

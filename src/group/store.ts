import { instant, leaseId, ticketId } from '../core/ids.ts';
import type { LeaseRow } from '../core/recover.ts';
import type { Lease } from '../core/state.ts';
import type { Reserved } from '../core/usage.ts';
import type { Writes } from './batch.ts';

/** At most one write per object in this time for the renewals' sake. */
const HEARTBEAT_EVERY_MS = 10_000;

/** What a group keeps of itself besides its leases. */
export interface GroupMemory {
  /** The last definition that the directory gave, as JSON. */
  readonly definition: string | null;
  /** The limit of an automatic group, as JSON. */
  readonly assumed: string | null;
  /** Whether the directory lists this pool. */
  readonly listed: string | null;
  /** What was used of rates and budgets, and what was learned of the upstream, as JSON. */
  readonly controls: string | null;
  /** What was learned of models, and spent by keys and agents, as JSON. */
  readonly tallies: string | null;
  /** When the pool was last in use, to within a minute. */
  readonly used: string | null;
  /** The last warnings, as JSON. */
  readonly warnings: string | null;
  /** Until when, and how, the pool tells the hub of the dashboards what changes, as JSON. */
  readonly watched: string | null;
}

/**
 * The rows of one group. `docs/storage-schema.md` describes them.
 *
 * `bootId` names the process where Headgate hosts itself: rows of another one died with it, because
 * their upstream calls did. On Cloudflare there is none, and every row may have a living holder.
 */
export class GroupStore {
  readonly #sql: SqlStorage;
  readonly #bootId: string;
  #heartbeatAt = 0;

  constructor(sql: SqlStorage, bootId: string) {
    this.#sql = sql;
    this.#bootId = bootId;
    sql.exec(
      'CREATE TABLE IF NOT EXISTS lease (id TEXT PRIMARY KEY, boot TEXT NOT NULL, data TEXT NOT NULL) WITHOUT ROWID',
    );
    sql.exec(
      'CREATE TABLE IF NOT EXISTS memory (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID',
    );
  }

  /**
   * The leases that may still have a holder, those of a dead process being deleted; and how many had one
   * when the instance before ended, in whatever process.
   */
  loadLeases(): { readonly leases: LeaseRow[]; readonly heldBefore: number } {
    const rows = this.#sql
      .exec<{ boot: string; data: string }>('SELECT boot, data FROM lease')
      .toArray()
      .map(({ boot, data }) => ({ boot, lease: parseLease(data) }));
    this.#sql.exec('DELETE FROM lease WHERE boot <> ?', this.#bootId);
    return {
      leases: rows.flatMap(({ boot, lease }) => (boot === this.#bootId ? [lease] : [])),
      heldBefore: rows.filter(({ lease }) => lease.phase !== 'cooling').length,
    };
  }

  /** Writes and deletes in one transaction: nothing is awaited between the statements. */
  write({ saved, dropped }: Writes): void {
    if (saved.length > 0) {
      this.#sql.exec(
        `INSERT OR REPLACE INTO lease (id, boot, data)
         SELECT value ->> 'id', ?, value FROM json_each(?)`,
        this.#bootId,
        `[${saved.map(formatLease).join(',')}]`,
      );
    }
    if (dropped.length > 0) {
      this.#sql.exec(
        'DELETE FROM lease WHERE id IN (SELECT value FROM json_each(?))',
        JSON.stringify(dropped),
      );
    }
  }

  recall(key: keyof GroupMemory): string | null {
    const row = this.#sql
      .exec<{ value: string }>('SELECT value FROM memory WHERE key = ?', key)
      .toArray()[0];
    return row?.value ?? null;
  }

  remember(key: keyof GroupMemory, value: string): void {
    this.#sql.exec('INSERT OR REPLACE INTO memory (key, value) VALUES (?, ?)', key, value);
  }

  /**
   * A write for its own sake, now and then: it fails in an instance that another one has replaced. The
   * answer to a renewal waits for it.
   */
  heartbeat(now: number): void {
    if (now - this.#heartbeatAt < HEARTBEAT_EVERY_MS) return;
    this.#heartbeatAt = now;
    this.#sql.exec(
      `INSERT OR REPLACE INTO memory (key, value) VALUES ('heartbeat', ?)`,
      String(now),
    );
  }
}

function formatLease(lease: Lease): string {
  const {
    id,
    ticketId: ticket,
    holder,
    lane,
    slots,
    grantedAt,
    phase,
    extendedUntil,
    reserved,
  } = lease;
  const coolingUntil = phase === 'cooling' ? lease.until : null;
  return JSON.stringify({
    id,
    ticket,
    holder,
    lane,
    slots,
    grantedAt,
    phase,
    extendedUntil,
    coolingUntil,
    ...(reserved === null ? {} : { reserved }),
  });
}

function parseLease(data: string): LeaseRow {
  const row = JSON.parse(data) as {
    id: string;
    ticket: string;
    holder: Omit<LeaseRow['holder'], 'tenant'> & { tenant?: string };
    // Rows of the first release have no tenant, lane and slots.
    lane?: LeaseRow['lane'];
    slots?: number;
    grantedAt: number;
    phase: LeaseRow['phase'];
    extendedUntil: number | null;
    coolingUntil: number | null;
    reserved?: Reserved;
  };
  return {
    id: leaseId(row.id),
    ticketId: ticketId(row.ticket),
    holder: { ...row.holder, tenant: row.holder.tenant ?? row.holder.caller },
    lane: row.lane ?? 'normal',
    slots: row.slots ?? 1,
    grantedAt: instant(row.grantedAt),
    phase: row.phase,
    extendedUntil: row.extendedUntil === null ? null : instant(row.extendedUntil),
    coolingUntil: row.coolingUntil === null ? null : instant(row.coolingUntil),
    reserved: row.reserved ?? null,
  };
}

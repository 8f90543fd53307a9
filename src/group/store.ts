import { instant, leaseId, ticketId } from '../core/words/ids.ts';
import { rowOf } from '../core/recover.ts';
import type { Lease, LeaseRow } from '../core/state.ts';
import type { Reserved } from '../core/words/usage.ts';
import type { Writes } from './batch.ts';
import type { Tables } from './tables.ts';

/** How long an object makes no second write for the renewals' sake. */
const HEARTBEAT_EVERY_MS = 10_000;

/** Everything that a group keeps of itself besides its leases. */
export interface GroupMemory {
  /** The last definition that the directory gave, as JSON. */
  readonly definition: string | null;
  /** The limit of an automatic group, as JSON. */
  readonly assumed: string | null;
  /** Whether the directory lists this pool. */
  readonly listed: string | null;
  /** Uses of rates and budgets, and lessons about the upstream, as JSON. */
  readonly controls: string | null;
  /** Lessons about models, and the spending of keys and agents, as JSON. */
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
 *
 * Rows that come before the tables are open stay in memory and are written when they are.
 */
export class GroupStore {
  readonly #tables: Tables;
  readonly #bootId: string;
  readonly #early = { leases: new Map<string, Lease>(), memory: new Map<string, string>() };
  #heartbeatAt = 0;

  constructor(tables: Tables, bootId: string) {
    this.#tables = tables;
    this.#bootId = bootId;
    tables.declare(
      'CREATE TABLE IF NOT EXISTS lease (id TEXT PRIMARY KEY, boot TEXT NOT NULL, data TEXT NOT NULL) WITHOUT ROWID',
    );
    tables.declare(
      'CREATE TABLE IF NOT EXISTS memory (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID',
    );
  }

  /**
   * Loads the leases that may still have a holder, and deletes those of a dead process; tells how many had one
   * when the instance before ended, in whatever process.
   */
  loadLeases(): { readonly leases: LeaseRow[]; readonly heldBefore: number } {
    const rows = this.#tables
      .read<{ boot: string; data: string }>('SELECT boot, data FROM lease')
      .map(({ boot, data }) => ({ boot, lease: parseLease(data) }));
    if (this.#tables.isOpen) {
      this.#tables.write('DELETE FROM lease WHERE boot <> ?', this.#bootId);
    }
    return {
      leases: rows.flatMap(({ boot, lease }) => (boot === this.#bootId ? [lease] : [])),
      heldBefore: rows.filter(({ lease }) => lease.phase !== 'cooling').length,
    };
  }

  /** Writes and deletes in one transaction: nothing is awaited between the statements. */
  write({ saved, dropped }: Pick<Writes, 'saved' | 'dropped'>): void {
    if (!this.#tables.isOpen) {
      for (const lease of saved) this.#early.leases.set(lease.id, lease);
      for (const id of dropped) this.#early.leases.delete(id);
      return;
    }
    if (saved.length > 0) {
      this.#tables.write(
        `INSERT OR REPLACE INTO lease (id, boot, data)
         SELECT value ->> 'id', ?, value FROM json_each(?)`,
        this.#bootId,
        `[${saved.map(formatLease).join(',')}]`,
      );
    }
    if (dropped.length > 0) {
      this.#tables.write(
        'DELETE FROM lease WHERE id IN (SELECT value FROM json_each(?))',
        JSON.stringify(dropped),
      );
    }
  }

  recall(key: keyof GroupMemory): string | null {
    const [row] = this.#tables.read<{ value: string }>(
      'SELECT value FROM memory WHERE key = ?',
      key,
    );
    return row?.value ?? null;
  }

  remember(key: keyof GroupMemory, value: string): void {
    if (this.#tables.isOpen) this.#remember(key, value);
    else this.#early.memory.set(key, value);
  }

  /** Makes the tables, and writes what there is so far. */
  open(): void {
    if (this.#tables.isOpen) return;
    this.#tables.open();
    const { leases, memory } = this.#early;
    this.write({ saved: [...leases.values()], dropped: [] });
    for (const [key, value] of memory) this.#remember(key, value);
    leases.clear();
    memory.clear();
  }

  /**
   * Writes for the sake of writing, now and then: it fails in an instance that another one has replaced. The
   * answer to a renewal waits for it.
   */
  heartbeat(now: number): void {
    if (!this.#tables.isOpen || now - this.#heartbeatAt < HEARTBEAT_EVERY_MS) return;
    this.#heartbeatAt = now;
    this.#remember('heartbeat', String(now));
  }

  #remember(key: string, value: string): void {
    this.#tables.write('INSERT OR REPLACE INTO memory (key, value) VALUES (?, ?)', key, value);
  }
}

/** Makes a lease's row; of what most leases have not, nothing is written. */
function formatLease(lease: Lease): string {
  const { ticketId: ticket, extensions, reserved, nested, ...row } = rowOf(lease);
  return JSON.stringify({
    ticket,
    ...row,
    ...(extensions === 0 ? {} : { extensions }),
    ...(reserved === null ? {} : { reserved }),
    ...(nested === null ? {} : { nested }),
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
    extensions?: number;
    coolingUntil: number | null;
    reserved?: Reserved;
    nested?: { in: string; slots: number };
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
    // Rows of the first release that a reset extended do not count how often.
    extensions: row.extensions ?? (row.extendedUntil === null ? 0 : 1),
    coolingUntil: row.coolingUntil === null ? null : instant(row.coolingUntil),
    reserved: row.reserved ?? null,
    nested: row.nested ? { in: leaseId(row.nested.in), slots: row.nested.slots } : null,
  };
}

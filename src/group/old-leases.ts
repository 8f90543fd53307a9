import type { HandedLease } from '../core/state.ts';
import { instant, leaseId, ticketId } from '../core/words/ids.ts';
import type { Reserved } from '../core/words/usage.ts';
import type { Tables } from './tables.ts';

/** The columns of a lease in releases up to 0.1.0, which wrote a row for each lease. */
interface OldRow {
  readonly id: string;
  readonly ticket: string;
  // Rows of the first release have no tenant, lane and slots.
  readonly holder: Omit<HandedLease['holder'], 'tenant'> & { readonly tenant?: string };
  readonly lane?: HandedLease['lane'];
  readonly slots?: number;
  readonly grantedAt: number;
  readonly phase: HandedLease['phase'];
  readonly coolingUntil: number | null;
  readonly reserved?: Reserved;
  readonly nested?: { readonly in: string; readonly slots: number };
}

const HAS_TABLE = `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'lease'`;

/**
 * Migrates the lease rows of an older release once. The table is dropped in the transaction that stores the leases in
 * their new form. Leases of another process ended with it.
 */
export function takeOldLeases(tables: Tables, bootId: string): HandedLease[] {
  if (!tables.isOpen || tables.read(HAS_TABLE).length === 0) return [];
  const rows = tables.read<{ data: string }>('SELECT data FROM lease WHERE boot = ?', bootId);
  tables.write('DROP TABLE lease');
  return rows.map(({ data }) => parseLease(data));
}

function parseLease(data: string): HandedLease {
  const row = JSON.parse(data) as OldRow;
  const { holder, grantedAt, phase, lane = 'normal', slots = 1, coolingUntil, nested } = row;
  return {
    id: leaseId(row.id),
    ticketId: ticketId(row.ticket),
    holder: { ...holder, tenant: holder.tenant ?? holder.caller },
    lane,
    slots,
    grantedAt: instant(grantedAt),
    phase,
    coolingUntil: coolingUntil === null ? null : instant(coolingUntil),
    reserved: row.reserved ?? null,
    nested: nested ? { in: leaseId(nested.in), slots: nested.slots } : null,
  };
}

import type { StoredCall } from '../contract/calls.ts';
import type { HistoryPoint } from '../contract/history.ts';
import { emptyControls, type Controls, type KeptMember } from '../core/member.ts';
import type { Amounts } from '../core/parts/demand.ts';
import type { BoundRow } from '../core/parts/bound.ts';
import type { UpstreamCallCounts } from '../core/parts/totals.ts';
import type { Stored } from '../core/recover.ts';
import type { BudgetStop } from '../core/state.ts';
import type { InstantMs, LeaseId } from '../core/words/ids.ts';
import type { GroupWrite } from '../core/writes.ts';
import type { DayCosts } from '../core/parts/costs.ts';
import type { GroupStore, Tables } from './store.ts';

/** How long writes replace each other in one place of the ring. */
const PLACE_MS = 100;

/** How long ended leases stay in the ring. After that, no holder retries their release. */
const RING_MS = 30_000;

/** Number of places that cover `RING_MS`. */
const PLACES = RING_MS / PLACE_MS + 2;

/** A row of the controls, with the bound that was written with it. */
interface KeptRow extends Controls {
  readonly ahead: Amounts;
  readonly members?: Readonly<Record<string, KeptMember>>;
  readonly bound: StoredRow;
  readonly boot: string;
}

/** The state that earlier instances stored. */
interface Loaded extends Stored {
  /** Slots that were held when the last instance wrote, in any process. */
  readonly heldBefore: number;
  /** When the last instance wrote, which it does at the end of each use. null if unknown. */
  readonly lastUsedAt: InstantMs | null;
  /** The open minute of the history, if the pool fell idle in it. */
  readonly minute: HistoryPoint | null;
  /** Lines of the call log that are not yet in a row. */
  readonly calls: readonly StoredCall[];
  /** Whether the last instance was in this process. On Cloudflare always true if there was one. */
  readonly isOfProcess: boolean;
}

/** A row of the bound, and data that is written with it. */
type StoredRow = BoundRow & {
  readonly minute?: HistoryPoint;
  readonly upstreams?: Readonly<Record<string, UpstreamCallCounts>>;
  readonly calls?: readonly StoredCall[];
  readonly budgetStop?: BudgetStop;
};

/** Data that is written with the bound of a pool that falls idle. */
export type IdleRow = Pick<StoredRow, 'minute' | 'calls' | 'budgetStop'>;

interface StoredRingRow extends Record<string, SqlStorageValue> {
  readonly place: number;
  readonly boot: string;
  readonly data: string;
}

/**
 * Stores the bound and the controls of a pool. See `design/storage.md`.
 *
 * `bootId` names the process if Headgate is self-hosted. Slots that another process granted ended with its upstream
 * calls, unless they are held by their ids. On Cloudflare it is empty, and every slot may have a living holder.
 */
export class BoundStore {
  readonly #tables: Tables;
  readonly #store: GroupStore;
  readonly #costs: CostRows;
  readonly #bootId: string;
  /** The current place of the ring, when it was started, and the leases that ended according to its rows. */
  #place = -1;
  #placeSince = -Infinity;
  #placeEnded: readonly LeaseId[] = [];
  #placeLapsed: readonly LeaseId[] = [];

  constructor(tables: Tables, store: GroupStore, costs: CostRows, bootId: string) {
    this.#tables = tables;
    this.#store = store;
    this.#costs = costs;
    this.#bootId = bootId;
    tables.declare(
      'CREATE TABLE IF NOT EXISTS bound (place INTEGER PRIMARY KEY, boot TEXT NOT NULL, data TEXT NOT NULL)',
    );
  }

  /**
   * Loads what earlier instances stored.
   *
   * @param heldById slots of an unstored pool whose holders may outlive the process
   */
  load(now: InstantMs, heldById = 0): Loaded {
    const value = this.#store.recall('controls');
    const keptRow: Controls & Partial<KeptRow> =
      value === null ? emptyControls(now) : (JSON.parse(value) as KeptRow);
    const { ahead = {}, members = {}, bound, boot, ...controls } = keptRow;
    const ring = this.#tables
      .read<StoredRingRow>('SELECT place, boot, data FROM bound')
      .map(({ place, boot: by, data }) => ({ place, by, row: JSON.parse(data) as StoredRow }));
    const lastOfRing = latest(ring);
    this.#place = lastOfRing?.place ?? -1;
    const rows = bound === undefined ? ring : [...ring, { by: boot ?? '', row: bound }];
    const last = latest(rows);
    const upstreams = latest(rows.filter(({ row }) => row.upstreams !== undefined))?.row.upstreams;
    const stored = { controls, ahead, members, ...(upstreams === undefined ? {} : { upstreams }) };
    if (last === undefined) {
      return {
        ...stored,
        bound: heldById > 0 ? heldRow(heldById, now) : null,
        untold: [],
        heldBefore: 0,
        lastUsedAt: null,
        minute: null,
        calls: [],
        isOfProcess: false,
      };
    }
    const { mark, held, at, waiters, minute = null, calls = [], budgetStop = null } = last.row;
    const late = rows.filter(({ row }) => row.at >= at - RING_MS).map(({ row }) => row);
    const ended = late.flatMap((row) => row.ended);
    const lapsed = late.flatMap((row) => row.lapsed);
    const isOfProcess = last.by === this.#bootId;
    // Holders by id are not calls of this process. They continue and renew.
    const isDead = !isOfProcess && last.row.mayOutlive !== true;
    const there = { mark: isDead ? 0 : mark, waiters: isOfProcess ? waiters : 0 };
    return {
      ...stored,
      budgetStop,
      bound: { ...last.row, ...there, ended, lapsed },
      // Leases that ended according to the row of the controls are repeated in the next row of the ring.
      untold: last.row === bound ? last.row.ended : [],
      heldBefore: held,
      lastUsedAt: at,
      minute,
      calls,
      isOfProcess,
    };
  }

  /**
   * Writes in the transaction of the turn.
   *
   * @param left data to write with the bound of a pool that falls idle: the open minute of the history, and lines of
   * the call log
   */
  write({ bound: row, isInRing, kept, upstreams }: GroupWrite, left: IdleRow | null): void {
    const bound: StoredRow = {
      ...row,
      ...left,
      ...(upstreams === null ? {} : { upstreams: Object.fromEntries(upstreams) }),
    };
    if (isInRing) this.#writePlace(bound);
    if (kept === null) return;
    const { controls, ahead, members, closedDays } = kept;
    this.#costs.write(closedDays);
    const ofMembers = members === undefined ? {} : { members };
    const keptRow: KeptRow = { ...controls, ahead, ...ofMembers, bound, boot: this.#bootId };
    this.#store.remember('controls', JSON.stringify(keptRow));
  }

  #writePlace(row: StoredRow): void {
    if (row.at >= this.#placeSince + PLACE_MS || row.at < this.#placeSince) {
      this.#place = (this.#place + 1) % PLACES;
      this.#placeSince = row.at;
      this.#placeEnded = [];
      this.#placeLapsed = [];
    }
    this.#placeEnded = [...this.#placeEnded, ...row.ended];
    this.#placeLapsed = [...this.#placeLapsed, ...row.lapsed];
    this.#tables.write(
      'INSERT OR REPLACE INTO bound (place, boot, data) VALUES (?, ?, ?)',
      this.#place,
      this.#bootId,
      JSON.stringify({ ...row, ended: this.#placeEnded, lapsed: this.#placeLapsed }),
    );
  }
}

/** Builds a row from only the number of slots held by id. */
function heldRow(slots: number, at: InstantMs): BoundRow {
  const none = { ended: [], lapsed: [], granted: [], heirs: [], waiters: 0 };
  return { ...none, seq: 0, at, mark: slots, held: slots, since: 0, next: 0, mayOutlive: true };
}

function latest<Row extends { readonly row: Pick<BoundRow, 'seq'> }>(
  rows: readonly Row[],
): Row | undefined {
  return rows.toSorted((a, b) => a.row.seq - b.row.seq).at(-1);
}

/** Number of stored days: enough for the current and the previous month. */
const DAYS_KEPT = 64;

/**
 * Stores a pool's costs of past days, one row each. Each day has its slot in a ring, so the table is bounded and no row
 * is ever deleted. The current day is in the row of the controls.
 */
export class CostRows {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
    tables.declare(
      'CREATE TABLE IF NOT EXISTS cost (slot INTEGER PRIMARY KEY, day INTEGER NOT NULL, data TEXT NOT NULL)',
    );
  }

  write(days: readonly DayCosts[]): void {
    for (const { day, lines, rest } of days) {
      this.#tables.write(
        'INSERT OR REPLACE INTO cost (slot, day, data) VALUES (?, ?, ?)',
        day % DAYS_KEPT,
        day,
        JSON.stringify({ lines, rest }),
      );
    }
  }

  /** Reads an inclusive range of days, in order. */
  read(from: number, to: number): DayCosts[] {
    return this.#tables
      .read<{ day: number; data: string }>(
        'SELECT day, data FROM cost WHERE day BETWEEN ? AND ? ORDER BY day',
        from,
        to,
      )
      .map(({ day, data }) => ({ day, ...(JSON.parse(data) as Omit<DayCosts, 'day'>) }));
  }
}

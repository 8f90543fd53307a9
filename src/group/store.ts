import type { Bound } from '../core/parts/bound.ts';
import type { GroupState } from '../core/state.ts';
import { after, type InstantMs } from '../core/words/ids.ts';
import { isForgettable } from './idleness.ts';

/** The storage of a pool: its tables, what it keeps in memory of them, and its removal when the pool is idle. */

/** Everything that a pool stores in addition to its bound. */
interface GroupMemory {
  /** The last definition from the directory, as JSON. */
  readonly definition: string | null;
  /** The limit of an automatic group, as JSON. */
  readonly assumed: string | null;
  /** Whether the directory lists this pool. */
  readonly listed: string | null;
  /** Use of rates and budgets, and lessons about the upstream, as JSON, with the bound that was written at the time. */
  readonly controls: string | null;
  /** The last warnings, as JSON. */
  readonly warnings: string | null;
  /** The steps of budgets and daily limits for which warnings were raised, as JSON. */
  readonly steps: string | null;
  /** Limits that upstreams reported in headers, as JSON. */
  readonly limits_seen: string | null;
  /** How the pool pushes its changes to the dashboards' hub, and the end of that time, as JSON. */
  readonly watched: string | null;
}

/** The key-value rows of one pool. Values that are set before the tables exist stay in memory until then. */
export class GroupStore {
  readonly #tables: Tables;
  readonly #early = new Map<string, string>();

  constructor(tables: Tables) {
    this.#tables = tables;
    tables.declare(
      'CREATE TABLE IF NOT EXISTS memory (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID',
    );
  }

  get isOpen(): boolean {
    return this.#tables.isOpen;
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
    else this.#early.set(key, value);
  }

  /** Creates the tables, and writes the pending values. */
  open(): void {
    if (this.#tables.isOpen) return;
    this.#tables.open();
    for (const [key, value] of this.#early) this.#remember(key, value);
    this.#early.clear();
  }

  /** Moves all values except the controls to memory, because all rows are about to be deleted. */
  close(): void {
    const rows = this.#tables.read<{ key: string; value: string }>('SELECT key, value FROM memory');
    for (const { key, value } of rows) if (key !== 'controls') this.#early.set(key, value);
    this.#tables.close();
  }

  #remember(key: string, value: string): void {
    this.#tables.write('INSERT OR REPLACE INTO memory (key, value) VALUES (?, ?)', key, value);
  }
}

type Sql = Pick<SqlStorage, 'exec'>;

/** A table that every pool has. */
const FIRST = 'memory';

/**
 * The tables of one pool. If a caller's value created the pool, they are created later. Until then reads return
 * nothing, and writes are kept in memory.
 */
export class Tables {
  readonly #sql: Sql;
  readonly #declared: string[] = [];
  #isOpen: boolean;

  constructor(sql: Sql, isOpen: boolean) {
    this.#sql = sql;
    this.#isOpen = isOpen;
  }

  /** Creates the tables of a pool that starts without any, unless an earlier instance has created them. */
  static ofUnverified(sql: Sql): Tables {
    const made = sql.exec(`SELECT 1 FROM sqlite_master WHERE name = ?`, FIRST).toArray();
    return new Tables(sql, made.length > 0);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Declares a table. It is created now, or when the tables are opened. */
  declare(table: string): void {
    this.#declared.push(table);
    if (this.#isOpen) this.#sql.exec(table);
  }

  open(): void {
    this.#isOpen = true;
    for (const table of this.#declared) this.#sql.exec(table);
  }

  /** Marks the tables as deleted. */
  close(): void {
    this.#isOpen = false;
  }

  read<T extends Record<string, SqlStorageValue>>(
    query: string,
    ...values: SqlStorageValue[]
  ): T[] {
    return this.#isOpen ? this.#sql.exec<T>(query, ...values).toArray() : [];
  }

  /** Requires open tables. */
  write(query: string, ...values: SqlStorageValue[]): void {
    this.#sql.exec(query, ...values);
  }
}

/**
 * Bounds of the delay before a pool is checked for removal. In between, the delay is the time since the last use: a
 * daily limit counts a call for a day, and each alarm costs money.
 */
const LOOK_AFTER_MS_MIN = 60_000;
const LOOK_AFTER_MS_MAX = 3_600_000;

interface RemovalParts {
  readonly state: GroupState;
  readonly store: GroupStore;
  /** Whether a caller's value created the pool and the pool is in its own object. */
  readonly isRemovable: boolean;
  readonly hadSuccess: () => boolean;
  readonly now: () => InstantMs;
  /** How long the pool has been unused, in this and earlier instances. */
  readonly idleMs: () => number;
  /** Sets the alarm, which wakes an unloaded object. */
  readonly setAlarm: (at: InstantMs) => void;
  readonly deleteAll: () => Promise<void>;
}

/**
 * Removes a pool that never had a success, once it is unused and has no state worth keeping.
 *
 * It is stored while it is in use, because an operator set its limit and a reset must not grant it twice. Without
 * storage the object no longer exists.
 */
export class Removal {
  readonly #parts: RemovalParts;
  #isAlarmSet = false;

  constructor(parts: RemovalParts) {
    this.#parts = parts;
  }

  /** Schedules the first check after a write. */
  noteWritten(): void {
    if (this.#isAlarmSet || !this.#isUnverified) return;
    this.#scheduleCheck();
  }

  /** Removes the pool at its alarm, or schedules another check. Returns false if the alarm has another purpose. */
  async atAlarm(): Promise<boolean> {
    if (!this.#isUnverified || !this.#parts.store.isOpen) return false;
    const { state, store, now, deleteAll } = this.#parts;
    if (!isForgettable(state, now())) {
      this.#scheduleCheck();
      return true;
    }
    this.#isAlarmSet = false;
    store.close();
    forgetWrites(state.bound);
    await deleteAll();
    return true;
  }

  get #isUnverified(): boolean {
    return this.#parts.isRemovable && !this.#parts.hadSuccess();
  }

  #scheduleCheck(): void {
    const { now, idleMs, setAlarm } = this.#parts;
    this.#isAlarmSet = true;
    setAlarm(after(now(), Math.min(Math.max(idleMs(), LOOK_AFTER_MS_MIN), LOOK_AFTER_MS_MAX)));
  }
}

/** Makes the next grant wait for a write, because no row covers it. */
function forgetWrites(bound: Bound): void {
  bound.confirmed = null;
  bound.inFlight = [];
}

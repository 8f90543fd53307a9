import type { Tables } from './tables.ts';

/** Everything that a group keeps of itself besides its bound. */
export interface GroupMemory {
  /** The last definition that the directory gave, as JSON. */
  readonly definition: string | null;
  /** The limit of an automatic group, as JSON. */
  readonly assumed: string | null;
  /** Whether the directory lists this pool. */
  readonly listed: string | null;
  /** Uses of rates and budgets, and lessons about the upstream, as JSON; with the bound that was written then. */
  readonly controls: string | null;
  /** Tallies that releases up to 0.1.0 kept beside the controls, as JSON. */
  readonly tallies: string | null;
  /** When the pool was last in use, in releases up to 0.1.0. */
  readonly used: string | null;
  /** The last warnings, as JSON. */
  readonly warnings: string | null;
  /** The steps of budgets and day limits that were warned of, as JSON. */
  readonly steps: string | null;
  /** Limits that upstreams have told in headers, as JSON. */
  readonly limits_seen: string | null;
  /** Until when, and how, the pool tells the hub of the dashboards what changes, as JSON. */
  readonly watched: string | null;
}

/**
 * The memory of one group: a row for each thing to remember. Rows that come before the tables are open stay in
 * memory and are written when they are.
 */
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

  /** Makes the tables, and writes what there is so far. */
  open(): void {
    if (this.#tables.isOpen) return;
    this.#tables.open();
    for (const [key, value] of this.#early) this.#remember(key, value);
    this.#early.clear();
  }

  /** Keeps in memory what there is, except the controls: all rows are about to be deleted. */
  close(): void {
    const rows = this.#tables.read<{ key: string; value: string }>('SELECT key, value FROM memory');
    for (const { key, value } of rows) if (key !== 'controls') this.#early.set(key, value);
    this.#tables.close();
  }

  #remember(key: string, value: string): void {
    this.#tables.write('INSERT OR REPLACE INTO memory (key, value) VALUES (?, ?)', key, value);
  }
}

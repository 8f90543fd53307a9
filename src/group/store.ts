import type { Tables } from './tables.ts';

/** Everything that a pool stores in addition to its bound. */
export interface GroupMemory {
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

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

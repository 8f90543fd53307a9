type Sql = Pick<SqlStorage, 'exec'>;

/** A table that every pool has, in every release. */
const FIRST = 'memory';

/**
 * The tables of one pool. They are made at once or, where a caller's value made the pool, later: until then reading finds
 * nothing, and what there is to write is kept in memory.
 */
export class Tables {
  readonly #sql: Sql;
  readonly #declared: string[] = [];
  #isOpen: boolean;

  constructor(sql: Sql, isOpen: boolean) {
    this.#sql = sql;
    this.#isOpen = isOpen;
  }

  /** Makes those of a pool that begins without any, unless an instance before has made them. */
  static ofUnproved(sql: Sql): Tables {
    const made = sql.exec(`SELECT 1 FROM sqlite_master WHERE name = ?`, FIRST).toArray();
    return new Tables(sql, made.length > 0);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Makes a table, now or when it is time for it. */
  declare(table: string): void {
    this.#declared.push(table);
    if (this.#isOpen) this.#sql.exec(table);
  }

  open(): void {
    this.#isOpen = true;
    for (const table of this.#declared) this.#sql.exec(table);
  }

  /** Notes that there are none any more. */
  close(): void {
    this.#isOpen = false;
  }

  read<T extends Record<string, SqlStorageValue>>(
    query: string,
    ...values: SqlStorageValue[]
  ): T[] {
    return this.#isOpen ? this.#sql.exec<T>(query, ...values).toArray() : [];
  }

  /** Writes, where they are open. */
  write(query: string, ...values: SqlStorageValue[]): void {
    this.#sql.exec(query, ...values);
  }
}

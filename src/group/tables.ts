type Row = Record<string, SqlStorageValue>;
type Sql = Pick<SqlStorage, 'exec'>;

/** A table that every pool has, in every release. */
const FIRST = 'memory';

/**
 * The tables of one pool. They are made at once, or, where a pool has yet to show that it is worth a row,
 * when it is proved: until then reading finds nothing, and who writes keeps what there is in memory.
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
    if (this.#isOpen) this.#sql.exec(table);
    else this.#declared.push(table);
  }

  open(): void {
    this.#isOpen = true;
    for (const table of this.#declared.splice(0)) this.#sql.exec(table);
  }

  read<T extends Row>(query: string, ...values: SqlStorageValue[]): T[] {
    return this.#isOpen ? this.#sql.exec<T>(query, ...values).toArray() : [];
  }

  /** Writes, where they are open. */
  write(query: string, ...values: SqlStorageValue[]): void {
    this.#sql.exec(query, ...values);
  }
}

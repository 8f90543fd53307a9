import { addRefusals, idOf, RefusalRows } from '../../core/parts/refusal-rows.ts';
import { REFUSAL_MINUTE_MS, type RefusalCount } from '../../contract/refusals.ts';

/** Maximum rows between two flushes, not counting those with only a reason and an upstream. */
const ROWS_MAX = 256;

export type RefusedCallCount = Omit<
  RefusalCount,
  'count' | 'first_at' | 'last_at' | 'message' | 'request_ids'
> & {
  readonly requestId: string | null;
  /** Makes the message that is kept. Only the first call of a row needs one. */
  readonly message: () => string;
};

/** Sums of refused calls by minute, until they are flushed. */
export class RefusalSums {
  #rows = new RefusalRows(ROWS_MAX);
  #sums = new Map<string, RefusalCount>();

  get isEmpty(): boolean {
    return this.#sums.size === 0;
  }

  note({ requestId, message, ...facts }: RefusedCallCount, now: number): void {
    // The cast is sound: a row has the reason of its calls.
    const row = this.#rows.place(facts) as typeof facts;
    const at = new Date(now).toISOString();
    const id = nameOf(row, at);
    const known = this.#sums.get(id);
    this.#add(id, {
      ...row,
      count: 1,
      first_at: at,
      last_at: at,
      message: known === undefined ? message() : known.message,
      request_ids: requestId === null ? [] : [requestId],
    });
  }

  /** Restores sums that could not be flushed, as far as there is room. */
  putBack(counts: readonly RefusalCount[]): void {
    for (const one of counts) {
      const id = nameOf(one, one.first_at);
      if (this.#sums.has(id) || this.#sums.size < 2 * ROWS_MAX) this.#add(id, one);
    }
  }

  /** Returns all sums and starts again at zero. */
  take(): RefusalCount[] {
    const sums = [...this.#sums.values()];
    this.#sums = new Map();
    this.#rows = new RefusalRows(ROWS_MAX);
    return sums;
  }

  #add(id: string, one: RefusalCount): void {
    const known = this.#sums.get(id);
    this.#sums.set(id, known === undefined ? one : { ...one, ...addRefusals(known, one) });
  }
}

function nameOf(row: Parameters<typeof idOf>[0], at: string): string {
  return `${Math.floor(Date.parse(at) / REFUSAL_MINUTE_MS)} ${idOf(row)}`;
}

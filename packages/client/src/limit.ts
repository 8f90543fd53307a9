import type { Gate } from './gate.ts';
import { holdUntilReceived, type HeldResult } from './held-results.ts';
import type { LeaseRequest } from './request.ts';
import { withLease } from './with-lease.ts';

/** Runs functions under leases, with the interface of p-limit. */
export interface Limit {
  /**
   * Waits for a slot, runs the function with the arguments, and returns its result. A `Response` is read to its end
   * first, so its slot is free regardless of when the caller reads it.
   */
  <Args extends unknown[], T>(
    run: (...args: Args) => T | PromiseLike<T>,
    ...args: Args
  ): Promise<HeldResult<T>>;
  /** Runs the function for each item, each under its own lease. Rejects with the first error. */
  map<Item, T>(
    items: Iterable<Item>,
    run: (item: Item, index: number) => T | PromiseLike<T>,
  ): Promise<HeldResult<T>[]>;
  /** Number of functions that run in this process. Other processes may hold further slots. */
  readonly activeCount: number;
  /** Number of functions that wait in this process. */
  readonly pendingCount: number;
  /** Cancels the waiting functions. Their promises reject with an `AbortError`. */
  clearQueue(): void;
}

export function createLimit(gate: Gate, request: LeaseRequest): Limit {
  let activeCount = 0;
  let pendingCount = 0;
  let waiting = new Set<AbortController>();

  async function limit<Args extends unknown[], T>(
    run: (...args: Args) => T | PromiseLike<T>,
    ...args: Args
  ): Promise<HeldResult<T>> {
    const leave = new AbortController();
    const wait = (): void => {
      waiting.add(leave);
      pendingCount += 1;
    };
    const go = (): void => {
      if (waiting.delete(leave)) pendingCount -= 1;
    };
    wait();
    try {
      const signal = both(request.signal, leave.signal);
      const work = async (): Promise<T> => {
        go();
        activeCount += 1;
        try {
          return await run(...args);
        } catch (error) {
          // The function may run again, and counts as waiting until then.
          wait();
          throw error;
        } finally {
          activeCount -= 1;
        }
      };
      return await withLease(gate, { ...request, signal }, work, holdUntilReceived);
    } finally {
      go();
    }
  }

  return Object.defineProperties(limit, {
    activeCount: { get: () => activeCount },
    pendingCount: { get: () => pendingCount },
    map: {
      value: <Item, T>(items: Iterable<Item>, run: (item: Item, index: number) => T) =>
        Promise.all(Array.from(items, (item, index) => limit(run, item, index))),
    },
    clearQueue: {
      value: () => {
        const all = waiting;
        waiting = new Set();
        pendingCount = 0;
        for (const leave of all) {
          leave.abort(new DOMException('The queue was cleared.', 'AbortError'));
        }
      },
    },
  }) as unknown as Limit;
}

function both(given: AbortSignal | undefined, own: AbortSignal): AbortSignal {
  return given === undefined ? own : AbortSignal.any([given, own]);
}

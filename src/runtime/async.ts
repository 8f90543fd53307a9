import { onTimer, type Schedule } from './clock.ts';

/** Helpers for promises: work behind a response, time limits, limited concurrency, and a light abort signal. */

/** Keeps work alive after the response, as `ctx.waitUntil` does. */
export interface Background {
  waitUntil(work: Promise<unknown>): void;
}

export function pause(ms: number, after: Schedule = onTimer): Promise<void> {
  return new Promise((resolve) => {
    after(ms, resolve);
  });
}

/** Rejects if `work` takes longer than `ms`. A call that is parked in a replaced instance may never return. */
export async function within<Value>(
  ms: number,
  work: Promise<Value>,
  after: Schedule = onTimer,
): Promise<Value> {
  const { promise: lost, reject } = Promise.withResolvers<never>();
  const cancel = after(ms, () => reject(new Error(`no answer within ${ms} ms`)));
  try {
    return await Promise.race([work, lost]);
  } finally {
    cancel();
  }
}

/**
 * Resolves once all pending work is done: written streams are read, and aborted connections are closed. The runtime
 * runs a timer only then.
 */
export function whenQuiet(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}

/** Maps items with at most `atOnce` running at a time. Keeps their order and rejects with the first failure. */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  map: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const rest = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of rest) results[index] = await map(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}

/** The part of `AbortSignal` that is needed to stop when it aborts. */
export interface AbortSource {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * An abort signal in plain JavaScript. It aborts when any of its sources does. A small call listens several times for
 * its caller to leave, and each listener of a native signal costs 2 to 4 µs of CPU (workerd, 2026-11-27).
 */
export class PlainAbort implements AbortSource {
  #aborted = false;
  #listeners: (() => void)[] = [];

  constructor(...sources: readonly AbortSource[]) {
    for (const source of sources) {
      if (source.aborted) this.#aborted = true;
      else source.addEventListener('abort', () => this.abort());
    }
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  abort(): void {
    this.#aborted = true;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at !== -1) this.#listeners.splice(at, 1);
  }
}

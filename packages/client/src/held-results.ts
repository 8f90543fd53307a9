import { isResponse } from './provider-answer.ts';
import type { Outcome } from './request.ts';

/**
 * A result under a lease. A stream or an async iterable keeps its reading interface only; other results are unchanged.
 */
export type HeldResult<T> = T extends Response
  ? T
  : T extends ReadableStream<infer Chunk>
    ? ReadableStream<Chunk>
    : T extends AsyncIterable<infer Chunk>
      ? AsyncIterableIterator<Chunk>
      : T;

/** Connects the end of a result to the end of its lease. */
export interface ResultEnd {
  /** Aborted when the work must stop. */
  readonly signal: AbortSignal;
  /** Aborts the signal if the reader cancels the result, because the work may not notice otherwise. */
  stop(): void;
  /** Ends the lease. Only the first call has an effect. Never rejects. */
  end(outcome: Outcome, error?: unknown): Promise<void>;
}

/** Ends the lease when a streamed result has been read to its end, and immediately for any other result. */
export async function holdUntilRead<T>(result: T, ending: ResultEnd): Promise<HeldResult<T>> {
  const held = await wrapped(result, ending);
  return held as HeldResult<T>;
}

/**
 * Like `holdUntilRead`, except that a `Response` is read to its end before it is returned. Otherwise a caller that
 * awaits many responses with `Promise.all` could deadlock: none would be read before all have a slot.
 */
export async function holdUntilReceived<T>(result: T, ending: ResultEnd): Promise<HeldResult<T>> {
  if (!isResponse(result) || result.body === null || result.bodyUsed) {
    return holdUntilRead(result, ending);
  }
  try {
    const whole = await result.arrayBuffer();
    await ending.end('success');
    return likeness(result, whole) as HeldResult<T>;
  } catch (error) {
    await ending.end('failed', error);
    throw error;
  }
}

async function wrapped(result: unknown, ending: ResultEnd): Promise<unknown> {
  if (isResponse(result)) return heldResponse(result, ending);
  if (isStream(result)) return result.locked ? atOnce(result, ending) : heldStream(result, ending);
  if (isAsyncIterable(result)) return new HeldIterator(result[Symbol.asyncIterator](), ending);
  return atOnce(result, ending);
}

async function atOnce<T>(result: T, ending: ResultEnd): Promise<T> {
  await ending.end('success');
  return result;
}

async function heldResponse(response: Response, ending: ResultEnd): Promise<Response> {
  const { body } = response;
  const unknownBody: unknown = body; // Another implementation of fetch may use Node's streams.
  if (body === null || !isStream(unknownBody) || body.locked) return atOnce(response, ending);
  return likeness(response, heldStream(body, ending));
}

/** Copies a `Response` with another body. */
function likeness(response: Response, body: ReadableStream | ArrayBuffer): Response {
  const { status, statusText, headers, url, redirected } = response;
  const made = new Response(body, { status, statusText, headers });
  // The constructor does not accept these.
  return Object.defineProperties(made, { url: { value: url }, redirected: { value: redirected } });
}

function heldStream<T>(source: ReadableStream<T>, ending: ResultEnd): ReadableStream<T> {
  const reader = source.getReader();
  const { signal } = ending;
  let onLost: () => void = () => {};
  const end = (outcome: Outcome, error?: unknown): Promise<void> => {
    signal.removeEventListener('abort', onLost);
    return ending.end(outcome, error);
  };
  return new ReadableStream<T>(
    {
      start(controller) {
        onLost = () => {
          controller.error(signal.reason);
          reader.cancel(signal.reason).catch(() => undefined);
          end('cancelled').catch(() => undefined);
        };
        if (signal.aborted) onLost();
        else signal.addEventListener('abort', onLost, { once: true });
      },
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (signal.aborted) return;
          if (!done) return controller.enqueue(value);
          await end('success');
          controller.close();
        } catch (error) {
          await end('failed', error);
          throw error;
        }
      },
      async cancel(reason) {
        signal.removeEventListener('abort', onLost);
        ending.stop();
        try {
          await reader.cancel(reason);
        } finally {
          await end('cancelled');
        }
      },
    },
    // Nothing is read ahead of the reader.
    { highWaterMark: 0 },
  );
}

/** Forwards an iterator and ends the lease when it ends. */
class HeldIterator<T> implements AsyncIterableIterator<T> {
  readonly #source: AsyncIterator<T>;
  readonly #ending: ResultEnd;
  readonly #onAbort = (): void => this.#lose();
  /** Rejects the pending step. */
  #onLost: (reason: unknown) => void = () => {};

  constructor(source: AsyncIterator<T>, ending: ResultEnd) {
    this.#source = source;
    this.#ending = ending;
    if (ending.signal.aborted) this.#lose();
    else ending.signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<T>> {
    return this.#step(() => this.#source.next());
  }

  async throw(error?: unknown): Promise<IteratorResult<T>> {
    const thrown = this.#source.throw?.bind(this.#source, error);
    if (thrown !== undefined) return this.#step(thrown);
    await this.#ending.end('failed');
    throw error;
  }

  async return(value?: unknown): Promise<IteratorResult<T>> {
    const { signal } = this.#ending;
    signal.removeEventListener('abort', this.#onAbort);
    this.#ending.stop();
    this.#onLost(signal.reason);
    try {
      const last = await this.#source.return?.(value);
      return last ?? { done: true, value };
    } finally {
      await this.#ending.end('cancelled');
    }
  }

  async #step(take: () => Promise<IteratorResult<T>>): Promise<IteratorResult<T>> {
    const { signal } = this.#ending;
    try {
      const taken = await new Promise<IteratorResult<T>>((resolve, reject) => {
        this.#onLost = reject;
        if (signal.aborted) reject(signal.reason);
        // Some iterators return or throw synchronously.
        Promise.resolve(take()).then(resolve, reject);
      });
      if (taken.done === true) await this.#ending.end('success');
      return taken;
    } catch (error) {
      await this.#ending.end('failed', error);
      throw error;
    }
  }

  async #close(): Promise<void> {
    await this.#source.return?.();
  }

  #lose(): void {
    this.#onLost(this.#ending.signal.reason);
    // A generator processes this only after its pending step, so nothing waits for it.
    this.#close().catch(() => undefined);
    this.#ending.end('cancelled').catch(() => undefined);
  }
}

function isStream(value: unknown): value is ReadableStream<unknown> {
  return Object.prototype.toString.call(value) === '[object ReadableStream]';
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

import { isResponse } from './provider-answer.ts';
import type { Outcome } from './request.ts';

/** A result under a lease: of what is read bit by bit the reading remains, of everything else all. */
export type HeldResult<T> = T extends Response
  ? T
  : T extends ReadableStream<infer Chunk>
    ? ReadableStream<Chunk>
    : T extends AsyncIterable<infer Chunk>
      ? AsyncIterableIterator<Chunk>
      : T;

/** The end of work, as its result tells of it. */
export interface ResultEnd {
  /** Aborted when the work must stop. */
  readonly signal: AbortSignal;
  /** Aborts it, where nobody wants the result any more: what made it may not notice otherwise. */
  stop(): void;
  /** Ends the lease, whatever comes after. Never rejects. */
  end(outcome: Outcome, error?: unknown): Promise<void>;
}

/** Ends the lease with the end of a result that is read bit by bit, and at once with every other. */
export async function holdUntilRead<T>(result: T, ending: ResultEnd): Promise<HeldResult<T>> {
  const held = await wrapped(result, ending);
  return held as HeldResult<T>;
}

/**
 * Ends the lease with the last byte of a `Response`, which is read to its end before it is given on, and of everything else
 * as above. Many that are waited for together would otherwise wait for one another to be read.
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
  const unknownBody: unknown = body; // Of another fetch it may be a stream of Node's.
  if (body === null || !isStream(unknownBody) || body.locked) return atOnce(response, ending);
  return likeness(response, heldStream(body, ending));
}

/** Makes a `Response` with another body. */
function likeness(response: Response, body: ReadableStream | ArrayBuffer): Response {
  const { status, statusText, headers, url, redirected } = response;
  const made = new Response(body, { status, statusText, headers });
  // What a constructor does not take.
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
    // Nothing is read ahead of whoever reads.
    { highWaterMark: 0 },
  );
}

/** Passes on what an iterator gives, and ends the lease with it. */
class HeldIterator<T> implements AsyncIterableIterator<T> {
  readonly #source: AsyncIterator<T>;
  readonly #ending: ResultEnd;
  readonly #onAbort = (): void => this.#lose();
  /** Rejects the step that somebody waits for. */
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
        // Some give it at once, or throw at once.
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
    // A generator that waits for its next piece hears of it after that, and nobody waits for it.
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

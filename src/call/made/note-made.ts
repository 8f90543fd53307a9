import type { RunReader, ReportedRun } from '../../upstream/operation/runs.ts';
import type { AuthenticatedCall } from '../call.ts';
import { isUnified, unifiedShape } from '../choose-path.ts';
import type { Located } from '../locate.ts';
import { isFoundAnyway } from './home-upstream.ts';
import { noteMade } from './made-ids.ts';

/** Records the ids of objects that the answer of an upstream names. */
export type NoteMade = (ids: readonly string[]) => Promise<void>;

/** Operations with a slot whose answers name a stored object. */
const STORES: ReadonlySet<string> = new Set(['responses', 'videos', 'runs', 'conversations']);

/** Operations without a slot whose answers name none. */
const STORES_NONE: ReadonlySet<string> = new Set(['count_tokens', 'health', 'models']);

/**
 * How the ids in the answer to a call are recorded. null if they are not, because the call names its upstream in its
 * path, creates nothing, or its objects are found at its upstream anyway.
 */
export function noterOf(
  call: AuthenticatedCall,
  { upstream, operation }: Located,
): NoteMade | null {
  const { method, url, env, ctx } = call;
  const { name, limited, socket } = operation;
  const isPost = method === 'POST' || socket === 'turns';
  if (env.RUNS === undefined || !isUnified(url) || !isPost) return null;
  if (limited ? !STORES.has(name) : STORES_NONE.has(name) || /\/cancel\/?$/.test(url.pathname)) {
    return null;
  }
  if (isFoundAnyway(call, unifiedShape(url.pathname), upstream)) return null;
  return (ids) => {
    const noted = noteMade(call, upstream, ids);
    ctx.waitUntil(noted);
    return noted;
  };
}

export function noting(reader: RunReader, note: NoteMade | null): RunReader {
  return note === null ? reader : new NotingReader(reader, note);
}

class NotingReader implements RunReader {
  readonly #inner: RunReader;
  readonly #note: NoteMade;
  #noted: Promise<void> | null = null;

  constructor(inner: RunReader, note: NoteMade) {
    this.#inner = inner;
    this.#note = note;
  }

  push(chunk: Uint8Array): void {
    this.#inner.push(chunk);
    if (this.#noted !== null || this.#inner.made === null) return;
    this.#noted = this.#note(this.#inner.made);
  }

  get said(): ReportedRun | null {
    return this.#inner.said;
  }

  get made(): readonly string[] | null {
    return this.#inner.made;
  }

  /**
   * Waits for the record of a run that continues, because the run is polled immediately, possibly through another
   * isolate.
   */
  async caughtUp(): Promise<void> {
    await this.#inner.caughtUp?.();
    if (this.said?.state === 'goes on') await this.#noted;
  }
}

import { onTimer, type Schedule } from '../../runtime/async.ts';
import { packingsOf, unpacked } from '../body/packing.ts';
import { REFUSAL_BYTES_MAX } from '../refusal/error-fields.ts';

/** The response of an upstream: the fetch, and the beginning of a refusal. */

export interface Fetcher {
  fetch(url: string, init: RequestInit): Promise<Response>;
}

/**
 * How an older runtime's error message begins if a response is not valid HTTP. A broken connection has its own message.
 */
const NOT_HTTP = /^internal error/;

/**
 * Maximum number of attempts. Each attempt discards one corrupted connection, and the pool may hold several: one for
 * each call in progress when the upstream wrote too much. With one retry, a few of 2,000 unaffected calls met a second
 * corrupted connection. With three retries, none did.
 */
const ATTEMPTS_MAX = 4;

/**
 * Calls an upstream. Some upstreams write more than the end of a response: more than its length, or a body on a 204.
 * The version 2026-09-18 of workerd reuses the connection and takes those bytes for the beginning of the next,
 * unrelated response. Version 2026-11-17 does not, but a Worker cannot choose its version.
 *
 * A Worker cannot prevent the reuse of a connection, but a call that fails in this way discards it. The call is
 * therefore retried if its body is available: `again` returns the body, and is null otherwise. The upstream may already
 * have worked on the failed attempt. Its connection is closed, as if the caller had left.
 */
export async function fetchAnswer(
  fetcher: Fetcher,
  url: string,
  init: RequestInit,
  again: (() => BodyInit | null) | null,
): Promise<Response> {
  let attempt = init;
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await fetcher.fetch(url, attempt);
    } catch (error) {
      if (again === null || attempts === ATTEMPTS_MAX || !isNotHttp(error)) throw error;
      if (init.signal?.aborted === true) throw error;
      attempt = { ...init, body: again() };
    }
  }
}

function isNotHttp(error: unknown): boolean {
  return error instanceof Error && NOT_HTTP.test(error.message);
}

/** Maximum time to read the beginning of a refusal. After that, only the part that has arrived is used. */
const READ_WAIT_MS = 2_000;

/** The beginning of a response's body, and the same response with its body still unread. */
interface PeekedAnswer {
  /** Decompressed. Empty if that fails. */
  readonly text: string;
  readonly answer: Response;
}

/** Reads the beginning of a response, which can still be passed on afterwards. */
export async function peekAnswer(
  answer: Response,
  bytesMax = REFUSAL_BYTES_MAX,
  after: Schedule = onTimer,
): Promise<PeekedAnswer> {
  const { body, status, statusText, headers } = answer;
  if (body === null) return { text: '', answer };
  const [peeked, rest] = body.tee();
  const text = await beginningOf(peeked, headers.get('content-encoding'), bytesMax, after);
  const same = new Response(rest, { status, statusText, headers, encodeBody: 'manual' });
  return { text, answer: same };
}

async function beginningOf(
  body: ReadableStream<Uint8Array>,
  contentEncoding: string | null,
  bytesMax: number,
  after: Schedule,
): Promise<string> {
  const packings = packingsOf(contentEncoding);
  if (packings === null) {
    body.cancel().catch(() => {});
    return '';
  }
  const reader = unpacked(body, packings).getReader();
  const decoder = new TextDecoder();
  const { promise: late, resolve } = Promise.withResolvers<null>();
  const callOff = after(READ_WAIT_MS, () => resolve(null));
  let text = '';
  let left = bytesMax;
  try {
    while (left > 0) {
      const read = await Promise.race([reader.read(), late]);
      if (read === null || read.done) break;
      text += decoder.decode(read.value.subarray(0, left), { stream: true });
      left -= read.value.length;
    }
  } catch {
    // The body broke off or is not compressed as declared. The part that was read is used.
  } finally {
    callOff();
    reader.cancel().catch(() => {});
  }
  return text;
}

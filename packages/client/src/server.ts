import { HeadgateError } from './errors.ts';
import { steadyNow } from './waits.ts';

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface Exchange {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path below the base URL, with a leading slash. */
  readonly path: string;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly idempotencyKey?: string;
  /** @default 10000 */
  readonly timeoutMs?: number;
}

/** A successful response. */
export interface ServerAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** When the request was sent, on the monotonic clock. Lifetimes in the response start after it. */
  readonly sentAt: number;
}

const TIMEOUT_MS = 10_000;

/** Sends requests to one deployment with one key. */
export class Server {
  readonly #base: string;
  readonly #key: string;
  readonly #fetch: Fetch;

  constructor(base: string, key: string, fetch: Fetch) {
    this.#base = base;
    this.#key = key;
    this.#fetch = fetch;
  }

  /** Sends one request. Throws a HeadgateError for an error response, or if there is no response. */
  async exchange({
    method,
    path,
    body,
    idempotencyKey,
    timeoutMs,
  }: Exchange): Promise<ServerAnswer> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.#key}` };
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
    const giveUp = new AbortController();
    const timer = setTimeout(() => giveUp.abort(), timeoutMs ?? TIMEOUT_MS);
    const sentAt = steadyNow();
    try {
      const response = await this.#fetch(`${this.#base}${path}`, {
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
        // A redirect would turn a POST into a GET and send the key elsewhere.
        redirect: 'manual',
        // A browser completes a release even if the page is closed.
        keepalive: method === 'DELETE',
        signal: giveUp.signal,
      });
      const text = await response.text();
      if (!response.ok) throw refusal(response, text);
      const { status } = response;
      const isNothing = status === 204 && method === 'DELETE';
      const reported = isNothing ? {} : objectIn(text);
      if (reported === null) throw notUnderstood(status);
      return { status, body: reported, sentAt };
    } catch (cause) {
      if (cause instanceof HeadgateError) throw cause;
      throw new HeadgateError('unreachable', 'Headgate is unreachable.', { cause });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Creates an error from an error response. A 5xx without a reason of Headgate comes from an intermediary. */
function refusal(response: Response, text: string): HeadgateError {
  const { status, headers } = response;
  const reason = headers.get('headgate-reason') ?? fieldsOf(text)['reason'];
  const wait = retryAfterMs(headers);
  const details = { status, ...(wait !== null && { retryAfterMs: wait }) };
  if (typeof reason === 'string') {
    const detail = fieldsOf(text)['detail'];
    return new HeadgateError(reason, typeof detail === 'string' ? detail : reason, details);
  }
  if (status >= 500) {
    return new HeadgateError(
      'unreachable',
      `A proxy or platform in front of Headgate returned ${status}.`,
      details,
    );
  }
  return notUnderstood(status, details);
}

/** Creates the error for a response that is not from Headgate. */
export function notUnderstood(status: number, more: { retryAfterMs?: number } = {}): HeadgateError {
  const message = `The response with status ${status} is not from Headgate. Check that \`url\` is its base URL.`;
  return new HeadgateError('not_understood', message, { ...more, status });
}

function fieldsOf(text: string): Readonly<Record<string, unknown>> {
  return objectIn(text) ?? {};
}

/** Parses a JSON object. null if the text is not one. */
function objectIn(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}

function retryAfterMs(headers: Headers): number | null {
  const ms = headers.get('retry-after-ms');
  if (ms !== null && /^\d{1,9}$/.test(ms)) return Number(ms);
  const seconds = headers.get('retry-after');
  return seconds !== null && /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1_000 : null;
}

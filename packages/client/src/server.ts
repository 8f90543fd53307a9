import { HeadgateError } from './errors.ts';
import { steadyNow } from './waits.ts';

/** The part of `fetch` that is used. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** One request to Headgate. */
export interface Exchange {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below the base URL, with its leading slash. */
  readonly path: string;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly idempotencyKey?: string;
  /** @default 10000 */
  readonly timeoutMs?: number;
}

/** An answer that is no refusal. */
export interface ServerAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** When the request was sent, in epoch milliseconds of this machine: whatever lasts was given after it. */
  readonly sentAt: number;
}

const TIMEOUT_MS = 10_000;

/** Headgate as this client knows it: where it is, and by what key it is asked. */
export class Server {
  readonly #base: string;
  readonly #key: string;
  readonly #fetch: Fetch;

  constructor(base: string, key: string, fetch: Fetch) {
    this.#base = base;
    this.#key = key;
    this.#fetch = fetch;
  }

  /** Asks once. Throws a `HeadgateError` for a refusal, and where no answer came. */
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
        // A redirect would turn a POST into a GET, and lead the key elsewhere.
        redirect: 'manual',
        // A page that is left still gives back what it holds.
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
      throw new HeadgateError('unreachable', 'Headgate cannot be reached.', { cause });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Makes an error of an answer. A 5xx that is not signed by Headgate comes from something on the way to it. */
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
      `Something before Headgate answers ${status}.`,
      details,
    );
  }
  return notUnderstood(status, details);
}

/** The error of an answer that no Headgate gives: something else is at its address, or on the way to it. */
export function notUnderstood(status: number, more: { retryAfterMs?: number } = {}): HeadgateError {
  const message = `The answer ${status} is not one of Headgate's: is url its base URL?`;
  return new HeadgateError('not_understood', message, { ...more, status });
}

function fieldsOf(text: string): Readonly<Record<string, unknown>> {
  return objectIn(text) ?? {};
}

/** Reads an object of JSON; null: it is none. */
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

import { BoundedMap } from '../core/parts/bounded-map.ts';
import { SESSION_HEADERS } from './caller-headers.ts';
import { bodyForm } from '../upstream/body/content-type.ts';
import { SESSION_SCAN_BYTES_MAX, sessionIn } from '../upstream/body/encoded-scan.ts';
import { sessionHash } from '../runtime/digests.ts';
import { steadyClock } from '../runtime/clock.ts';
import type { CallBody } from './body.ts';
import type { Candidate } from './plan.ts';
import { readAhead } from './read-ahead.ts';
import type { CallerLeft, Rejected } from './result.ts';

/** How long calls read their sessions in advance after a pool needed one. */
const BY_SESSIONS_MS = 30_000;
const POOLS_MAX = 1_000;

/** Maximum bytes of a header that are hashed. */
const HEADER_LENGTH_MAX = 512;

const bySessions = new BoundedMap<string, number>(POOLS_MAX);

/** Notes that calls of a pool have to wait, so that the next ones read their sessions first. */
export function noteBySessions(pool: string): void {
  bySessions.set(pool, steadyClock.now() + BY_SESSIONS_MS);
}

export function wentBySessions(pool: string): boolean {
  return (bySessions.get(pool) ?? 0) > steadyClock.now();
}

/** Hashes by body, so that several attempts of one call read its session once. */
const known = new WeakMap<CallBody, string | null>();

/**
 * The session of a call that names no agent. Sessions share the scheduling order within a tenant and affect nothing
 * else. They are read only once a call has to wait.
 */
export interface SessionOfCall {
  /** Whether the headers and the body have not been searched yet. */
  readonly isUnread: boolean;
  /** Its hash. null if there is none, or it is unread. */
  readonly hash: string | null;
  /** Reads it. Returns null if the call continues. */
  read(): Promise<Rejected | CallerLeft | null>;
}

/** The session of a call. null if the call names its agent, or is a WebSocket. */
export function sessionOf(candidate: Candidate): SessionOfCall | null {
  const { call, located } = candidate;
  if (call.headers.agent !== null || located.operation.socket !== undefined) return null;
  return new CallSession(candidate);
}

class CallSession implements SessionOfCall {
  readonly #candidate: Candidate;

  constructor(candidate: Candidate) {
    this.#candidate = candidate;
  }

  get isUnread(): boolean {
    return !known.has(this.#candidate.call.body);
  }

  get hash(): string | null {
    return known.get(this.#candidate.call.body) ?? null;
  }

  async read(): Promise<Rejected | CallerLeft | null> {
    if (!this.isUnread) return null;
    const { call } = this.#candidate;
    const { body, request, table } = call;
    let text = inHeaders(request.headers);
    if (text === null) {
      const isJson = bodyForm(request.headers.get('content-type') ?? '').kind === 'json';
      const ended = isJson ? await readAhead(this.#candidate, SESSION_SCAN_BYTES_MAX) : null;
      if (ended !== null) return ended;
      const bytes = isJson ? body.bytes : null;
      text = bytes === null ? null : await sessionIn(bytes, body.encodingIn(request.headers));
    }
    const hash = text === null ? null : await sessionHash(table.snapshot.fingerprintKey, text);
    known.set(body, hash);
    return null;
  }
}

function inHeaders(headers: Headers): string | null {
  for (const name of SESSION_HEADERS) {
    const value = headers.get(name)?.trim() ?? '';
    if (value !== '') return `${name}\n${value.slice(0, HEADER_LENGTH_MAX)}`;
  }
  return null;
}

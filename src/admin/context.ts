import type { Context, Hono } from 'hono';
import type { AdminRole } from '../contract/config/keys.ts';
import type { Env } from '../env.ts';
import type { SecretFault } from '../runtime/secrets.ts';
import { logEvent } from '../runtime/log.ts';
import type { FieldError } from '../config/field-error.ts';

/** The context of a request to the admin API: who acts, and the errors that routes throw. */

export interface Actor {
  /** Name in the audit log: `admin-token`, the id of an admin key, or `access:…`. */
  readonly actor: string;
  readonly role: AdminRole;
  readonly via: 'token' | 'session' | 'access';
  /** End of the session. null without a session. */
  readonly expiresAt: string | null;
}

interface AdminEnv {
  Bindings: Env;
  Variables: { who: Actor };
}

export type AdminApp = Hono<AdminEnv>;
export type AdminContext = Context<AdminEnv>;

const TITLES = {
  400: 'Unreadable request',
  401: 'Not signed in',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Method not allowed',
  409: 'Conflict',
  412: 'Changed concurrently',
  413: 'Too large',
  415: 'Unsupported content type',
  422: 'Invalid request',
  429: 'Too many failed attempts',
  500: 'Internal error',
  503: 'Directory unreachable',
};

type ProblemStatus = keyof typeof TITLES;

interface ProblemExtras {
  readonly errors?: readonly FieldError[];
  /** Number of errors that are not listed. */
  readonly more?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The command that fixes the problem, the next step, and what is wrong with the secret that the command sets. */
  readonly way?: {
    readonly command: string;
    readonly afterwards: string;
    readonly fault?: SecretFault;
  };
}

/** An error response. Routes throw it, and their error boundary returns it. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly #status: ProblemStatus;
  readonly #extras: ProblemExtras;

  constructor(status: ProblemStatus, detail: string, extras: ProblemExtras = {}) {
    super(detail);
    this.#status = status;
    this.#extras = extras;
  }

  /** Formats the problem as in RFC 9457. */
  toResponse(): Response {
    const body = {
      type: 'about:blank',
      title: TITLES[this.#status],
      status: this.#status,
      detail: this.message,
      ...(this.#extras.errors === undefined ? {} : { errors: this.#extras.errors }),
      ...(this.#extras.more === undefined ? {} : { more: this.#extras.more }),
      ...this.#extras.way,
    };
    return new Response(`${JSON.stringify(body)}\n`, {
      status: this.#status,
      headers: { ...this.#extras.headers, 'content-type': 'application/problem+json' },
    });
  }
}

const MAY_BE_MADE = 'The change may or may not have been made. Check it before you retry.';

/** Converts an error into a response. Unexpected errors are not shown, because they may quote the request. */
export function problemResponse(error: unknown): Response {
  if (error instanceof ProblemError) return error.toResponse();
  logEvent('admin_error', { name: error instanceof Error ? error.name : typeof error });
  if (isStorageFailure(error)) {
    return new ProblemError(
      503,
      `Headgate could not read or write its data. If it is self-hosted, check the free space on the disk of its data folder. ${MAY_BE_MADE}`,
      { headers: { 'retry-after': '10' } },
    ).toResponse();
  }
  if (isObjectFailure(error)) {
    return new ProblemError(503, `The directory is unreachable at the moment. ${MAY_BE_MADE}`, {
      headers: { 'retry-after': '1' },
    }).toResponse();
  }
  return new ProblemError(
    500,
    'Headgate failed to handle this request because of an internal error.',
  ).toResponse();
}

/** Returns whether the connection between the Worker and an object failed. The runtime marks such errors. */
function isObjectFailure(error: unknown): boolean {
  return (
    error instanceof Error &&
    ['retryable', 'overloaded', 'durableObjectReset', 'remote'].some((mark) => mark in error)
  );
}

/**
 * Returns whether an object could not read or write its database. The runtime reports it only in the message, or hides
 * it.
 */
function isStorageFailure(error: unknown): boolean {
  return error instanceof Error && /^internal error\b|\bSQLITE_(?:FULL|IOERR)/.test(error.message);
}

import { acquire, isTemporary } from './acquire.ts';
import { HeadgateError } from './errors.ts';
import { Gate, type OnUnavailable } from './gate.ts';
import type { HeldResult } from './held-results.ts';
import type { Lease } from './lease.ts';
import { createLimit, type Limit } from './limit.ts';
import type { LeaseRequest } from './request.ts';
import { Server, type Fetch } from './server.ts';
import type { Status } from './status.ts';
import { withLease, type Work } from './with-lease.ts';

export interface HeadgateOptions {
  /** Base URL of the deployment, http or https, without a user name or password. */
  readonly url: string;
  /** A gateway key. Without gateway keys, the provider key that the work uses. */
  readonly key: string;
  /** @default globalThis.fetch */
  readonly fetch?: Fetch | undefined;
  /**
   * What happens while Headgate is unreachable: `throw` a HeadgateError, or `pass` to run the work without a lease. A
   * rejection by Headgate is an error in either case.
   * @default throw
   */
  readonly onUnavailable?: OnUnavailable | undefined;
}

/** Client of one Headgate deployment. Methods reject with a HeadgateError if Headgate rejects or cannot be reached. */
export interface Headgate {
  /**
   * Acquires a lease, runs the work and releases the lease when the work ends. If the work returns a `Response`, a
   * stream or an async iterable, the lease is released when the result has been read to its end.
   */
  withLease<T>(request: LeaseRequest, work: Work<T>): Promise<HeldResult<T>>;
  /** Creates a function that runs other functions under leases, as p-limit does. A string is the name of a group. */
  limit(request: string | LeaseRequest): Limit;
  /** Waits for a lease. The caller must release it. */
  acquire(request: LeaseRequest): Promise<Lease>;
  /** Acquires a lease without waiting. Resolves to null if no slot is free. */
  tryAcquire(request: LeaseRequest): Promise<Lease | null>;
  /** Returns the groups that the key may use, its calls in flight and its queue positions. */
  status(): Promise<Status>;
}

/** Creates a client. It sends no request until it is used. Throws a TypeError for an invalid option. */
export function createHeadgate(options: HeadgateOptions): Headgate {
  const gate = gateOf(options);
  return {
    withLease: (request, work) => withLease(gate, request, work),
    limit: (request) =>
      createLimit(gate, typeof request === 'string' ? { group: request } : request),
    acquire: (request) => acquire(gate, request),
    async tryAcquire(request) {
      try {
        return await acquire(gate, { ...request, maxWaitMs: 0 });
      } catch (error) {
        if (error instanceof HeadgateError && isTemporary(error)) return null;
        throw error;
      }
    },
    async status() {
      const { body } = await gate.server.exchange({ method: 'GET', path: '/status' });
      return body as unknown as Status;
    },
  };
}

function gateOf({ url, key, fetch, onUnavailable = 'throw' }: HeadgateOptions): Gate {
  const base = URL.canParse(url) ? new URL(url) : null;
  if (base === null || !/^https?:$/.test(base.protocol) || base.username + base.password !== '') {
    throw new TypeError('url: expected an http or https URL without a user name or password.');
  }
  if (typeof key !== 'string' || !/^[\x21-\x7e]+$/.test(key)) {
    throw new TypeError('key: expected a key without spaces.');
  }
  if (onUnavailable !== 'throw' && onUnavailable !== 'pass') {
    throw new TypeError('onUnavailable: expected "throw" or "pass".');
  }
  const at = `${base.origin}${base.pathname.replace(/\/+$/, '')}`;
  // The global is looked up for each request, because a test or a polyfill may replace it. It must be called as a
  // method.
  const ask: Fetch = fetch ?? ((to, init) => globalThis.fetch(to, init));
  return new Gate(new Server(at, key, ask), onUnavailable);
}

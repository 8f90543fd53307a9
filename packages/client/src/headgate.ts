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
  /** Headgate's base URL. */
  readonly url: string;
  /** A gateway key, or where there are none the provider key that the work uses. */
  readonly key: string;
  /** @default the global one */
  readonly fetch?: Fetch | undefined;
  /**
   * Choice for work while Headgate cannot be reached: `throw` an error, or `pass`, which runs it without a lease. A
   * refusal of Headgate's is an error in either case.
   * @default throw
   */
  readonly onUnavailable?: OnUnavailable | undefined;
}

/** A Headgate, as work inside of this process uses it. */
export interface Headgate {
  /** Runs work under a lease. */
  withLease<T>(request: LeaseRequest, work: Work<T>): Promise<HeldResult<T>>;
  /** Makes a function that runs others under leases of one kind; a name stands for a group. */
  limit(request: string | LeaseRequest): Limit;
  /** Waits for a lease. Whoever has it must release it. */
  acquire(request: LeaseRequest): Promise<Lease>;
  /** Takes a lease if there is a slot now. Null: there is none. */
  tryAcquire(request: LeaseRequest): Promise<Lease | null>;
  /** Tells what the key may use, what of its work runs, and what waits at which place. */
  status(): Promise<Status>;
}

/** Makes a client of one Headgate. It asks nothing until it is used. */
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
    throw new TypeError('url: expected the http or https address of a Headgate, without a user.');
  }
  if (typeof key !== 'string' || !/^[\x21-\x7e]+$/.test(key)) {
    throw new TypeError('key: expected a key, without spaces.');
  }
  if (onUnavailable !== 'throw' && onUnavailable !== 'pass') {
    throw new TypeError('onUnavailable: expected throw or pass.');
  }
  const at = `${base.origin}${base.pathname.replace(/\/+$/, '')}`;
  // Looked up anew each time: somebody may replace it, and it wants its own object around it.
  const ask: Fetch = fetch ?? ((to, init) => globalThis.fetch(to, init));
  return new Gate(new Server(at, key, ask), onUnavailable);
}

import {
  leaseAnswerSchema,
  leaseRequestSchema,
  releaseRequestSchema,
  renewalAnswerSchema,
  reportAnswerSchema,
  reportRequestSchema,
  ticketAnswerSchema,
} from '../../../src/contract/caller-api.ts';
import type { Fetch } from '../../../packages/client/src/server.ts';

/** A request as it came. */
export interface ScriptedHeadgateSeen {
  readonly method: string;
  readonly path: string;
  readonly body: Record<string, unknown>;
  readonly headers: Record<string, string>;
  readonly redirect: RequestInit['redirect'];
}

/** A mishap of a request on its way: it is lost, its answer is, or something else answers. */
type ScriptedHeadgateFault = 'lost' | 'answer lost' | Response;

interface ScriptedHeadgateWaiting {
  readonly ticket: string;
  readonly grant: () => void;
  readonly slice: () => void;
}

const TTL_MS = 45_000;

/**
 * A Headgate of one group in this process, as far as a client can tell, with faults to order. What it is asked and what it answers
 * is held against the schemas of the routes.
 */
export class ScriptedHeadgate {
  limit: number;
  readonly seen: ScriptedHeadgateSeen[] = [];
  readonly held = new Set<string>();
  /** The most that were held at once. */
  peak = 0;
  /** When those whose slice has ended are to come again. */
  retryAfterMs = 0;
  /** Answers to the next reports. Afterwards: go on. */
  readonly verdicts: Record<string, unknown>[] = [];
  readonly #faults: { readonly on: string; readonly fault: ScriptedHeadgateFault }[] = [];
  readonly #revoked = new Set<string>();
  readonly #byKey = new Map<string, string>();
  #waiting: ScriptedHeadgateWaiting[] = [];
  #made = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Lets the next request of a method meet a fault. */
  fault(on: string, ...faults: ScriptedHeadgateFault[]): void {
    this.#faults.push(...faults.map((fault) => ({ on, fault })));
  }

  revoke(): void {
    for (const lease of this.held) this.#revoked.add(lease);
  }

  /** Ends the slice of all that wait: they are told to come again. */
  slice(): void {
    for (const { slice } of this.#waiting.slice()) slice();
  }

  /** Requests so far, as `METHOD path`, with what is opaque left out. */
  get asked(): string[] {
    return this.seen.map(({ method, path }) => `${method} /${path.split('/')[1] ?? ''}`);
  }

  readonly fetch: Fetch = async (url, init) => {
    const { method = 'GET', signal } = init;
    const seen: ScriptedHeadgateSeen = {
      method,
      path: new URL(url).pathname,
      body: typeof init.body === 'string' ? (JSON.parse(init.body) as Record<string, unknown>) : {},
      headers: init.headers as Record<string, string>,
      redirect: init.redirect,
    };
    this.seen.push(seen);
    const at = this.#faults.findIndex(({ on }) => on === method);
    const fault = at === -1 ? undefined : this.#faults.splice(at, 1)[0]?.fault;
    if (fault instanceof Response) return fault;
    if (fault === 'lost') throw new TypeError('fetch failed');
    const answer = await this.#answer(seen, signal ?? undefined);
    if (fault === 'answer lost') throw new TypeError('terminated');
    return answer;
  };

  #answer(seen: ScriptedHeadgateSeen, signal?: AbortSignal): Response | Promise<Response> {
    // A renewal gives the lease another name, and the old ones stay good.
    const [id = ''] = decodeURIComponent(seen.path.split('/')[2] ?? '').split('~');
    switch (`${seen.method} ${seen.path.split('/')[1] ?? ''}`) {
      case 'POST leases':
        return this.#post(seen, signal);
      case 'PUT leases':
        if (!this.held.has(id) || this.#revoked.has(id)) return problem(410, 'lease_revoked');
        return Response.json(
          renewalAnswerSchema.parse({ lease: `${id}~${(this.#made += 1)}`, ...lifetime() }),
        );
      case 'PATCH leases': {
        reportRequestSchema.parse(seen.body);
        const verdict = this.verdicts.shift() ?? { action: 'go_on', after_ms: 0 };
        if (verdict['action'] !== 'go_on') this.#free(id);
        return Response.json(reportAnswerSchema.parse(verdict));
      }
      case 'DELETE leases':
        releaseRequestSchema.parse(seen.body);
        this.#free(id);
        return new Response(null, { status: 204 });
      case 'DELETE tickets':
        this.#waiting = this.#waiting.filter(({ ticket }) => ticket !== id);
        return new Response(null, { status: 204 });
      case 'GET status':
        return Response.json({ at: 'now', groups: [] });
      default:
        return problem(404, 'upstream_unknown');
    }
  }

  #post(
    { body, headers }: ScriptedHeadgateSeen,
    signal?: AbortSignal,
  ): Response | Promise<Response> {
    leaseRequestSchema.parse(body);
    const key = headers['idempotency-key'] ?? '';
    const asked = body['ticket'] as string | undefined;
    const ticket = asked ?? this.#byKey.get(key) ?? `t${(this.#made += 1)}`;
    this.#byKey.set(key, ticket);
    this.#waiting = this.#waiting.filter((one) => one.ticket !== ticket);
    const lease = `l-${ticket}`;
    if (this.held.has(lease) || this.held.size < this.limit) return this.#grant(lease);
    if (body['max_wait_ms'] === 0) return problem(429, 'busy', 1);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting = this.#waiting.filter((one) => one !== mine);
      };
      const mine: ScriptedHeadgateWaiting = {
        ticket,
        grant: () => {
          leave();
          resolve(this.#grant(lease));
        },
        slice: () => {
          leave();
          const reported = {
            ticket,
            position: 0,
            estimate_ms: null,
            group: 'scripted',
            retry_after_ms: this.retryAfterMs,
          };
          resolve(Response.json(ticketAnswerSchema.parse(reported), { status: 202 }));
        },
      };
      this.#waiting.push(mine);
      signal?.addEventListener('abort', () => reject(new TypeError('aborted')));
    });
  }

  #grant(lease: string): Response {
    this.held.add(lease);
    this.peak = Math.max(this.peak, this.held.size);
    const what = {
      lease,
      lease_ids: [`${lease}#1`],
      groups: ['glm'],
      member: 'second',
      waited_ms: 7,
    };
    return Response.json(leaseAnswerSchema.parse({ ...what, ...lifetime() }), { status: 201 });
  }

  #free(lease: string): void {
    if (this.held.delete(lease)) this.#waiting[0]?.grant();
  }
}

const lifetime = () => ({
  // Clocks differ: nothing may go by this.
  expires_at: new Date(0).toISOString(),
  expires_after_ms: TTL_MS,
  renew_within_ms: TTL_MS / 3,
});

export function problem(status: number, reason: string, retryAfterS?: number): Response {
  const headers: Record<string, string> = { 'headgate-reason': reason };
  if (retryAfterS !== undefined) headers['retry-after'] = String(retryAfterS);
  return Response.json({ reason, detail: `Because of ${reason}.` }, { status, headers });
}

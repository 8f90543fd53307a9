import type { Env } from '../../env.ts';
import type { Schedule, Background, AbortSource } from '../../runtime/async.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { GatewayKeyConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import type { Placement } from '../../routing/placement.ts';
import { cleanPath, isUnclean } from '../../upstream/operation/operation.ts';
import { isolateConfig } from '../../config/isolate-config.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { crossSite, isCrossSite } from '../../runtime/origin.ts';
import type { Departed, Forwarded } from '../../contract/http.ts';
import type { Caller } from '../identity/authenticate.ts';
import { rejected, type Answered, type Moved, type Rejected } from '../results/result.ts';
import type { CallerHeaders } from './caller-headers.ts';
import type { CallBody } from './body.ts';

/**
 * A proxied call, its URL, checks that need no upstream, and the calls in progress in this isolate with the callers of
 * them that left.
 */

/** One proxied call as it arrived, with the version of the configuration that applies to it. */
export interface ProxyCall {
  readonly request: Request;
  /** The method of the request. Each read of it there crosses into the runtime. */
  readonly method: string;
  /** Aborts when the caller is seen to leave. */
  readonly signal: AbortSource;
  readonly url: URL;
  readonly query: URLSearchParams;
  readonly env: Env;
  readonly ctx: Background;
  readonly table: RoutingTable;
  /** Schedules on the call's own clock. */
  readonly after: Schedule;
  readonly body: CallBody;
  readonly early: EarlyAnswer;
  /** Facts found so far, by which a refusal of the call is counted. */
  readonly found: FoundFacts;
}

export interface AuthenticatedCall extends ProxyCall {
  readonly kind: 'known';
  readonly caller: Caller;
  readonly headers: CallerHeaders;
}

/** Facts of a call, set as they are found, by which its refusal is counted. null until found. */
export interface FoundFacts {
  caller: {
    readonly key: Pick<GatewayKeyConfig, 'id' | 'team'> | null;
    readonly fingerprint: string | null;
  } | null;
  located: { readonly upstream: Pick<Upstream, 'id'>; readonly model: string | null } | null;
  placements: readonly Pick<Placement, 'group'>[];
}

export function nothingFound(): FoundFacts {
  return { caller: null, located: null, placements: [] };
}

/** The answer to a call that begins before the upstream has responded. */
export class EarlyAnswer {
  readonly #begun = Promise.withResolvers<Answered>();
  #hasBegun = false;

  get begun(): Promise<Answered> {
    return this.#begun.promise;
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  begin(answer: Answered): void {
    this.#hasBegun = true;
    this.#begun.resolve(answer);
  }
}

/** Splits a path into `/{upstream}/rest`. */
export function splitPath(pathname: string): { readonly id: string; readonly rest: string } {
  const slash = pathname.indexOf('/', 1);
  if (slash < 0) return { id: pathname.slice(1), rest: '' };
  return { id: pathname.slice(1, slash), rest: pathname.slice(slash) };
}

/** The URL of a call, without the slashes and versions that its client added by mistake. */
export function calledUrl(text: string, table: Pick<RoutingTable, 'upstreams'> | null): URL {
  const url = new URL(text);
  if (!isUnclean(url.pathname)) return url;
  const path = url.pathname.replace(/^\/+/, '/');
  const { id, rest } = splitPath(path);
  const upstream = table?.upstreams.get(id);
  if (upstream === undefined) url.pathname = cleanPath(path, 'openai');
  else if (rest !== '') url.pathname = `/${id}${cleanPath(rest, upstream.dialect)}`;
  else url.pathname = path;
  return url;
}

/**
 * The origin that the caller used. Behind a proxy that terminates TLS the request arrives as http, and the proxy names
 * the caller's scheme, first in the list if there are several. A forged header changes only the answer to its own
 * sender.
 */
export function calledOrigin({ request, url }: Pick<ProxyCall, 'request' | 'url'>): string {
  const forwarded = request.headers.get('x-forwarded-proto');
  const scheme = /^\s*(https?)\s*(?:,|$)/i.exec(forwarded ?? '')?.[1]?.toLowerCase();
  return scheme === undefined ? url.origin : `${scheme}://${url.host}`;
}

/** The reply to a call if the version in force is unknown. */
export const UNCONFIRMED: ErrorReply = {
  reason: 'limiter_unavailable',
  message: 'The configuration is not available yet. Try again in a moment.',
};

/**
 * Checks whether a configuration is still in force, for calls that ask no pool. A pool would notice. Returns null if it
 * is, as far as the directory answers, and a rejection if the directory has never answered here.
 */
export async function changedSince({
  table,
  env,
  ctx,
}: Pick<AuthenticatedCall, 'table' | 'env' | 'ctx'>): Promise<Moved | Rejected | null> {
  if (!isolateConfig.mayBeOld(table)) return null;
  const sure = await isolateConfig.confirmed(env, ctx);
  if (sure === null) return rejected(UNCONFIRMED);
  return sure === table ? null : { kind: 'moved', configVersion: sure.snapshot.version };
}

/**
 * Rejects a call without a key that a browser sends for a web page of another site. Every client that reaches a keyless
 * upstream may use it, and the browser can reach it. Returns null if the call has a key or comes from no such page.
 * `injected` is the operator's key.
 */
export function foreignPage(
  { request, caller, table }: Pick<AuthenticatedCall, 'request' | 'caller' | 'table'>,
  upstream: Upstream,
  injected: string | null,
): Rejected | null {
  if (injected !== null) return null;
  const takesNone = upstream.isKeyless || upstream.via !== null;
  if (!upstream.isKeyless && caller.credentials.providerKey !== null) return null;
  // A preflight has no key. An upstream that requires keys may allow pages to send them, and its answer states that.
  if (request.method === 'OPTIONS' && !takesNone) return null;
  if (!isCrossSite(request, table.snapshot.config.cors_origins)) return null;
  const what = `Headgate accepts no calls without a key to upstream \`${upstream.id}\``;
  return rejected(crossSite(what));
}

/** Calls that this isolate is working on, including queued ones. A stream counts until its last byte. */
let count = 0;

export function callsInFlight(): number {
  return count;
}

/**
 * Counts a call until `work` ends, and keeps it alive until then. When a caller leaves before its answer, the runtime
 * drops unguarded work at its next step, and the call would count forever. Therefore `work` must end after its caller
 * has left.
 */
export function countInFlight(work: Promise<unknown>, ctx: Background): void {
  count += 1;
  const end = (): void => {
    count -= 1;
  };
  ctx.waitUntil(work.then(end, end));
}

interface ForwardedRequest {
  readonly cf?: object | undefined;
}

interface AnsweringCall {
  readonly connection: number;
  readonly leave: () => void;
}

/**
 * Cuts calls whose callers the forwarder saw leave, on self-hosted deployments.
 *
 * The runtime aborts a request's signal when it sees the connection closed. If a failed write reveals the close, it
 * drops the answer and aborts nothing (workerd 1.20260918.1, `WorkerEntrypoint::requestImpl`). A silent upstream would
 * then hold the slot until `holds.idle_ms`.
 */
class Departures {
  readonly #underWay = new Set<AnsweringCall>();

  /** Calls `onLeft` if the caller leaves before the work is done. */
  async watch<T>({ cf }: ForwardedRequest, work: Promise<T>, onLeft: () => void): Promise<T> {
    const { connection }: Partial<Forwarded> = { ...cf };
    if (connection === undefined) return work;
    // A promise, because the work to cut belongs to another request than the one that reports the departure.
    const { promise, resolve } = Promise.withResolvers<void>();
    promise.then(onLeft).catch(() => {});
    const call = { connection, leave: resolve };
    this.#underWay.add(call);
    try {
      return await work;
    } finally {
      this.#underWay.delete(call);
    }
  }

  report({ cf }: ForwardedRequest): void {
    const { departed = [] }: Partial<Departed> = { ...cf };
    const gone = new Set(departed);
    for (const { connection, leave } of this.#underWay) {
      if (gone.has(connection)) leave();
    }
  }
}

/** Callers that have left without a report from the runtime. */
export const departures = new Departures();

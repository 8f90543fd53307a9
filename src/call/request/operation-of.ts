import type { Upstream } from '../../contract/config/upstream.ts';
import type { Dialect } from '../../contract/http.ts';
import { methodOverride, overridingMethods } from '../../upstream/operation/readings.ts';
import { classify, type Operation } from '../../upstream/operation/operation.ts';
import { cancelsRun } from '../../upstream/operation/runs.ts';
import { classifyTurn, classifyUpgrade } from '../../upstream/operation/upgrades.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { AuthenticatedCall } from './call.ts';
import { isUpgrade } from './upgrade.ts';

/** The operation of a call, and requests for lists of models, which Headgate answers itself. */

/** A group names the path in all its readings. */
const NAMED = 'in all readings';

/**
 * The operation of a call at an upstream. A call that takes no slot by the table of operations takes one where a group
 * names its path. A call that took a slot where it was sent first (`first`) also takes one elsewhere, and a turn is a
 * turn everywhere.
 */
export function operationOf(
  call: AuthenticatedCall,
  upstream: Upstream,
  path: string,
  first: Operation | null = null,
): Operation {
  const { query, caller, table } = call;
  const { keyIds } = caller;
  if (first?.socket === 'turns') return classifyTurn(path, query, upstream);
  // A WebSocket upgrade is a different operation than a GET of the same path.
  if (isUpgrade(call)) {
    const session = classifyUpgrade(path, query, upstream);
    const at = { upstream, operation: session.name, method: 'GET', path, keyIds };
    const isNamed = session.socket === 'session' && table.routes.namedPath(at) === NAMED;
    return isNamed ? { ...session, isNamed } : session;
  }
  return strictest(call, (method) => {
    const operation = classify(method, path, query, upstream.dialect);
    // The cancellation of a run must not queue behind the run.
    if (operation.limited || cancelsRun(path)) return operation;
    const at = { upstream, operation: operation.name, method, path, keyIds };
    const named = table.routes.namedPath(at);
    const limited = named !== 'no' || first?.limited === true;
    return named === NAMED ? { ...operation, limited, isNamed: true } : { ...operation, limited };
  });
}

/** The operation of a call by its path alone, before its upstream is known. */
export function operationAt(
  call: Pick<AuthenticatedCall, 'request' | 'method' | 'query'>,
  path: string,
  dialect: Dialect,
): Operation {
  return strictest(call, (method) => classify(method, path, call.query, dialect));
}

/** The operation of a call by its method. If that takes no slot, the methods that may override it are checked too. */
function strictest(
  { request, method, query }: Pick<AuthenticatedCall, 'request' | 'method' | 'query'>,
  by: (method: string) => Operation,
): Operation {
  const asSent = by(method);
  if (asSent.limited) return asSent;
  const override = methodOverride(request.headers, query);
  if (override === null) return asSent;
  for (const countsAs of overridingMethods(override)) {
    const operation = by(countsAs);
    if (operation.limited) return { ...operation, countsAs };
  }
  return asSent;
}

/** A request for the list of models (`id` is null) or for one of them. */
export interface ModelsRequest {
  readonly dialect: ModelsDialect;
  readonly id: string | null;
}

export type ModelsDialect = Extract<Dialect, 'openai' | 'anthropic' | 'gemini'>;

/** Paths of the list of models and of one model. Gemini's SDKs name the version of its API. */
const PATH = /^\/(v1|v1beta)\/models(?:\/(.*))?$/;

/** The part of a unified path that names a model, as received. null if it names none. */
export function modelInPath(pathname: string): string | null {
  const named = PATH.exec(pathname)?.[2] ?? '';
  // The id of a model may contain slashes, which clients escape or not.
  const text = named.replace(/^\/+/, '');
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return end === 0 ? null : text.slice(0, end);
}

/** The name of the model in a unified path. null if it names none. */
export function modelNamedBy(pathname: string): string | null {
  const named = modelInPath(pathname);
  return named === null ? null : decoded(named);
}

/** Reads a request for models of all upstreams. null if it is another request. */
export function modelsRequest(
  request: Pick<Request, 'method' | 'headers'>,
  url: URL,
  table: Pick<RoutingTable, 'upstreams'> | null,
): ModelsRequest | null {
  const { pathname } = url;
  const [, version] = PATH.exec(pathname) ?? [];
  if (version === undefined || table?.upstreams.has(version) === true) return null;
  const { method, headers } = request;
  if (method !== 'GET' && method !== 'HEAD') return null;
  const id = modelNamedBy(pathname);
  const dialect = version === 'v1' ? dialectOfClient(headers, url.searchParams) : 'gemini';
  return { dialect, id: dialect === 'gemini' ? (id?.replace(/^models\/(?=.)/, '') ?? null) : id };
}

/**
 * The dialect of a client by its headers, for paths that several dialects have. Clients of each dialect send their keys
 * in different places.
 */
export function dialectOfClient(headers: Headers, query: URLSearchParams): ModelsDialect {
  if (headers.has('x-goog-api-key') || headers.has('x-goog-api-client') || query.has('key')) {
    return 'gemini';
  }
  return headers.has('anthropic-version') || headers.has('x-api-key') ? 'anthropic' : 'openai';
}

/** Malformed escapes stay unchanged. No model has such a name. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

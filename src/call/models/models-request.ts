import type { Dialect } from '../../contract/dialect.ts';
import type { RoutingTable } from '../../config/snapshots.ts';

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

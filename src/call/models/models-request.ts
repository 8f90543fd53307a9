import type { Dialect } from '../../contract/dialect.ts';
import type { RoutingTable } from '../../config/snapshots.ts';

/** A request for the list of models (`id`: null) or for one of them. */
export interface ModelsRequest {
  /** The dialect in which the caller expects the answer. */
  readonly dialect: ModelsDialect;
  readonly id: string | null;
}

/** Dialects in which lists of models are answered. */
export type ModelsDialect = Extract<Dialect, 'openai' | 'anthropic' | 'gemini'>;

/** Paths of the list of models and of one model. Gemini's SDKs name the version of its API. */
const PATH = /^\/(v1|v1beta)\/models(?:\/(.*))?$/;

/** The part of a path of the unified routes that names a model, as it came; null: it names none. */
export function modelInPath(pathname: string): string | null {
  const named = PATH.exec(pathname)?.[2] ?? '';
  // The id of a model may have slashes itself, and clients escape them or not.
  const text = named.replace(/^\/+/, '');
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return end === 0 ? null : text.slice(0, end);
}

/** The name of the model in a path of the unified routes; null: it names none. */
export function modelNamedBy(pathname: string): string | null {
  const named = modelInPath(pathname);
  return named === null ? null : decoded(named);
}

/** Reads a request for models of all upstreams. Null: it is for something else. */
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

/** The dialect of a client by its headers, for paths that several dialects have. Clients send their keys in places of their own. */
export function dialectOfClient(headers: Headers, query: URLSearchParams): ModelsDialect {
  if (headers.has('x-goog-api-key') || headers.has('x-goog-api-client') || query.has('key')) {
    return 'gemini';
  }
  return headers.has('anthropic-version') || headers.has('x-api-key') ? 'anthropic' : 'openai';
}

/** Malformed escapes stay as they came: no model is named like that. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

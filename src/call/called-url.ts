import type { RoutingTable } from '../config/snapshots.ts';
import { cleanPath, isUnclean } from '../upstream/operation/operation.ts';
import type { ProxyCall } from './call.ts';

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

import {
  dropCredentials,
  keyPlaceFor,
  placeCredentials,
} from '../upstream/transfer/credentials.ts';
import type { Fetcher } from '../upstream/transfer/fetch-answer.ts';
import { upstreamRequestHeaders } from '../upstream/transfer/request-headers.ts';
import type { Caller, UpstreamKey } from './identity/authenticate.ts';
import type { ProxyCall } from './call.ts';
import { fetcherOf } from './fetcher.ts';
import type { Located } from './locate.ts';

/** Where and how a call goes out. */
export interface Target {
  readonly url: string;
  readonly headers: Headers;
  readonly fetcher: Fetcher;
}

/**
 * The way out of a call, with the right key in the right place. `isSpilled`: its caller sent it to another
 * upstream, and all its credentials with it.
 */
export function targetOf(
  call: ProxyCall,
  located: Located,
  caller: Caller,
  key: UpstreamKey,
  isSpilled: boolean,
): Target {
  const { request, url, env } = call;
  const { upstream, path, operation } = located;
  const clientAcceptEncoding = request.cf?.clientAcceptEncoding;
  const headers = upstreamRequestHeaders(
    request.headers,
    typeof clientAcceptEncoding === 'string' ? clientAcceptEncoding : null,
    caller.credentials.gatewayKey,
  );
  // Nothing can leave an empty query, so that need not be a copy.
  const query = url.search === '' ? call.query : new URLSearchParams(call.query);
  const { injected } = key;
  if (isSpilled) dropCredentials(headers, query);
  const place = keyPlaceFor(upstream, operation.shape);
  placeCredentials(
    headers,
    query,
    caller.credentials,
    injected === null ? null : { place, key: injected },
  );
  // A query that lost nothing goes on as it was written, not encoded anew.
  const search = query.size === call.query.size ? url.search : `?${query.toString()}`;
  return {
    url: `${upstream.baseUrl}${path}${search === '?' ? '' : search}`,
    headers,
    fetcher: fetcherOf(upstream.via, env),
  };
}

import { ACCOUNT_SELECTORS } from '../providers/accounts.ts';
import {
  dropAccounts,
  dropCredentials,
  keyToPlace,
  placeCredentials,
} from '../upstream/transfer/credentials.ts';
import type { Fetcher } from '../upstream/transfer/fetch-answer.ts';
import { asUpgrade, upstreamRequestHeaders } from '../upstream/transfer/request-headers.ts';
import type { Env } from '../env.ts';
import type { Candidate } from './plan.ts';

/** The way out of a call. */
export interface Target {
  readonly url: string;
  readonly headers: Headers;
  readonly fetcher: Fetcher;
}

/** Makes the way out of a call, with the right key in the right place. */
export function targetOf(
  candidate: Pick<Candidate, 'call' | 'located' | 'key' | 'spilledFrom' | 'member'>,
): Target {
  const { call, located, spilledFrom, member } = candidate;
  const { request, url, env, caller } = call;
  const { upstream, path, operation } = located;
  const clientAcceptEncoding = request.cf?.clientAcceptEncoding;
  const headers = upstreamRequestHeaders(
    request.headers,
    typeof clientAcceptEncoding === 'string' ? clientAcceptEncoding : null,
    caller.credentials.gatewayKey,
  );
  // Nothing can leave an empty query, so that need not be a copy.
  const query = url.search === '' ? call.query : new URLSearchParams(call.query);
  const { injected } = candidate.key;
  if (operation.socket !== undefined) asUpgrade(headers);
  // Its caller sent it to another upstream, and all its credentials with it; or with none of its own to any member.
  if (spilledFrom !== null || member !== null) {
    dropCredentials(headers, query);
    // Of which account it is for it spoke of another key.
    dropAccounts(headers, query, ACCOUNT_SELECTORS);
  }
  const key = keyToPlace(upstream, operation.shape, injected);
  placeCredentials(headers, query, caller.credentials, key);
  // A query that lost nothing goes on as it was written, not encoded anew.
  const search = query.size === call.query.size ? url.search : `?${query.toString()}`;
  return {
    url: `${upstream.baseUrl}${path}${search === '?' ? '' : search}`,
    headers,
    fetcher:
      operation.socket === undefined ? fetcherOf(upstream.via, env) : upgraderOf(upstream.via, env),
  };
}

/**
 * The public network, or the binding that the upstream is reached through. Nothing comes out of a cache on the
 * way: what one caller was told is no business of another's.
 */
export function fetcherOf(via: string | null, env: Env): Fetcher {
  if (via === null) return { fetch: (url, init) => fetch(url, { ...init, cache: 'no-store' }) };
  const binding = (env as unknown as Record<string, Fetcher | undefined>)[via];
  if (binding === undefined) return { fetch: () => Promise.reject(new Error(`no binding ${via}`)) };
  return { fetch: (url, init) => binding.fetch(url, { ...init, cache: 'no-store' }) };
}

/** The same for a WebSocket upgrade, which has a network of its own where Headgate hosts itself. */
function upgraderOf(via: string | null, env: Env): Fetcher {
  const { UPGRADES } = env;
  if (via !== null || UPGRADES === undefined) return fetcherOf(via, env);
  return { fetch: (url, init) => UPGRADES.fetch(url, { ...init, cache: 'no-store' }) };
}

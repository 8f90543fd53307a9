import { ACCOUNT_SELECTORS } from '../providers/accounts.ts';
import { entryAt } from '../routing/key-access.ts';
import { compileGlobs } from '../routing/glob.ts';
import type { AnswerHeaders } from '../contract/answer-headers.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import {
  dropAccounts,
  dropCredentials,
  keyToPlace,
  placeCredentials,
} from '../upstream/transfer/credentials.ts';
import type { Fetcher } from '../upstream/transfer/fetch-answer.ts';
import {
  asUpgrade,
  keepHeaders,
  mayGoElsewhere,
  mayGoUnlisted,
  upstreamRequestHeaders,
} from '../upstream/transfer/headers.ts';
import type { Env } from '../env.ts';
import type { Candidate } from './plan.ts';

export interface CallTarget {
  readonly url: string;
  readonly headers: Headers;
  readonly fetcher: Fetcher;
  /** Names of its headers and parameters that choose an account and were dropped. */
  readonly dropped: readonly string[];
}

type Outgoing = Pick<Candidate, 'call' | 'located' | 'key' | 'spilledFrom' | 'member'>;

/** Maximum length of the header that names the dropped fields, because callers choose the names. */
const DROPPED_MAX = 400;

/** The answer header that names the dropped headers and parameters of its call. */
export function droppedHeader({ dropped }: CallTarget): AnswerHeaders {
  if (dropped.length === 0) return {};
  // Names of parameters may contain any characters.
  const names = dropped.map((name) => encodeURI(name)).join(', ');
  return { 'headgate-dropped': names.slice(0, DROPPED_MAX) };
}

export function targetOf(outgoing: Outgoing): CallTarget {
  const { call, located } = outgoing;
  const { request, url, env, caller } = call;
  const { upstream, path, operation } = located;
  const clientAcceptEncoding = request.cf?.clientAcceptEncoding;
  const headers = upstreamRequestHeaders(
    request.headers,
    typeof clientAcceptEncoding === 'string' ? clientAcceptEncoding : null,
    caller.credentials.gatewayKey,
  );
  if (call.body.isUnpacked) headers.delete('content-encoding');
  // An empty query cannot lose anything, so it need not be copied.
  const query = url.search === '' ? call.query : new URLSearchParams(call.query);
  const { injected } = outgoing.key;
  const dropped = dropForeign(outgoing, headers, query);
  if (operation.socket !== undefined) asUpgrade(headers);
  const key = keyToPlace(upstream, operation.shape, injected);
  placeCredentials(headers, query, caller.credentials, key);
  // A query that lost nothing is sent as written, without another encoding.
  const search = query.size === call.query.size ? url.search : `?${query.toString()}`;
  return {
    url: `${upstream.baseUrl}${path}${search === '?' ? '' : search}`,
    headers,
    fetcher:
      operation.socket === undefined ? fetcherOf(upstream.via, env) : upgraderOf(upstream.via, env),
    dropped,
  };
}

const NONE: readonly string[] = [];

/**
 * Removes, in place, the headers and parameters of a call that are meant for another key or host. Returns the names
 * that chose an account.
 */
function dropForeign(
  { call, located: { upstream }, key, spilledFrom, member }: Outgoing,
  headers: Headers,
  query: URLSearchParams,
): readonly string[] {
  // The caller sent it to another upstream with its credentials for that one, or without credentials to any member.
  const isMoved = spilledFrom !== null || member !== null;
  const entry = entryAt(upstream, key.injected, call.caller.credentials.providerKey);
  if (entry === null && !isMoved) return NONE;
  const isListed = listedBy(upstream);
  const dropped = dropAccounts(headers, query, ACCOUNT_SELECTORS, isListed ?? undefined);
  const calledAt = spilledFrom?.upstream ?? member?.calledAt ?? upstream;
  if (isListed !== null) keepHeaders(headers, (name) => isListed(name) || mayGoUnlisted(name));
  else if (!isSameHost(calledAt, upstream)) keepHeaders(headers, mayGoElsewhere);
  if (isMoved) dropCredentials(headers, query);
  return dropped;
}

/** Compiled header lists, which never change within one version of the configuration. */
const compiled = new WeakMap<readonly string[], (name: string) => boolean>();

/** The matcher of the headers that an upstream lists. null if it has no list. */
function listedBy({ requestHeaders }: Upstream): ((name: string) => boolean) | null {
  if (requestHeaders === null) return null;
  let matches = compiled.get(requestHeaders);
  if (matches === undefined) {
    matches = compileGlobs(requestHeaders.map((name) => name.toLowerCase()));
    compiled.set(requestHeaders, matches);
  }
  return matches;
}

function isSameHost(a: Upstream, b: Upstream): boolean {
  if (a === b || a.baseUrl === b.baseUrl) return a.via === b.via;
  return a.via === b.via && new URL(a.baseUrl).host === new URL(b.baseUrl).host;
}

/**
 * The public network, or the binding of the upstream. Answers never come from a cache, because one caller must not
 * receive another's answer.
 */
export function fetcherOf(via: string | null, env: Env): Fetcher {
  if (via === null) return { fetch: (url, init) => fetch(url, { ...init, cache: 'no-store' }) };
  const binding = (env as unknown as Record<string, Fetcher | undefined>)[via];
  if (binding === undefined) return { fetch: () => Promise.reject(new Error(`no binding ${via}`)) };
  return { fetch: (url, init) => binding.fetch(url, { ...init, cache: 'no-store' }) };
}

/** The same for a WebSocket upgrade, which uses a separate network on self-hosted deployments. */
function upgraderOf(via: string | null, env: Env): Fetcher {
  const { UPGRADES } = env;
  if (via !== null || UPGRADES === undefined) return fetcherOf(via, env);
  return { fetch: (url, init) => UPGRADES.fetch(url, { ...init, cache: 'no-store' }) };
}

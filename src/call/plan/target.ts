import { ACCOUNT_SELECTORS } from '../../providers/accounts.ts';
import { entryAt } from '../../routing/key-access.ts';
import { compileGlobs } from '../../routing/glob.ts';
import type { AnswerHeaders } from '../../contract/http.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import {
  dropAccounts,
  dropCredentials,
  keyToPlace,
  placeCredentials,
} from '../../upstream/transfer/credentials.ts';
import type { Fetcher } from '../../upstream/transfer/fetch-answer.ts';
import {
  asUpgrade,
  keepHeaders,
  mayGoElsewhere,
  mayGoUnlisted,
  upstreamRequestHeaders,
  hasAddresses,
  isRedirect,
  readdress,
} from '../../upstream/transfer/headers.ts';
import type { Env } from '../../env.ts';
import { logEvent } from '../../runtime/log.ts';
import { steadyClock } from '../../runtime/async.ts';
import { calledOrigin } from '../request/call.ts';
import { rejected, type Rejected } from '../results/result.ts';
import type { Candidate } from './plan.ts';

/** The request that a candidate sends to its upstream, and the addresses in the answer to it. */

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

/**
 * Minimum interval between log lines for a host, and maximum hosts logged in that time, because each answer may name
 * another host.
 */
const SILENT_MS = 60_000;
const HOSTS_MAX = 100;

const logged = new Set<string>();
let loggedSince = -Infinity;

/** An answer whose addresses its caller may follow. */
interface ReceivedAnswer {
  readonly kind: 'received';
  readonly answer: Response;
}

/**
 * Rewrites the addresses of an answer to our own if they point to the upstream that answered. Rejects a redirect to
 * another host, which callers would follow with their keys.
 */
export function withOwnAddresses(
  answer: Response,
  candidate: Pick<Candidate, 'call' | 'located' | 'key'>,
  { url: askedUrl }: CallTarget,
): ReceivedAnswer | Rejected {
  const { headers: given } = answer;
  if (!hasAddresses(given)) return received(answer);
  const { status, statusText, body, webSocket } = answer;
  const { call, located, key } = candidate;
  const { id, baseUrl, redirects } = located.upstream;
  const redirect = isRedirect(status);
  const { gatewayKey } = call.caller.credentials;
  const { changed, elsewhere } = readdress(given, {
    askedUrl,
    baseUrl,
    ownUrl: `${calledOrigin(call)}/${id}`,
    injected: key.injected,
    // The caller's own key belongs to this upstream, wherever that stores its answers.
    passesElsewhere: redirects === 'pass' || (gatewayKey === null && !redirect),
  });
  if (elsewhere !== null) logElsewhere(id, status, elsewhere);
  if (redirect && changed.get('location') === null) {
    body?.cancel().catch(() => {});
    return redirectsElsewhere(id, status);
  }
  const headers = new Headers(given);
  for (const [name, value] of changed) {
    if (value === null) headers.delete(name);
    else headers.set(name, value);
  }
  const readable = { status, statusText, headers, encodeBody: 'manual' } as const;
  return received(
    webSocket === null
      ? new Response(body, readable)
      : new Response(null, { status, webSocket, headers }),
  );
}

function received(answer: Response): ReceivedAnswer {
  return { kind: 'received', answer };
}

function logElsewhere(upstream: string, status: number, host: string): void {
  const now = steadyClock.now();
  if (now - loggedSince >= SILENT_MS) {
    logged.clear();
    loggedSince = now;
  }
  const place = `${upstream} ${host}`;
  if (logged.has(place) || logged.size >= HOSTS_MAX) return;
  logged.add(place);
  logEvent('upstream_redirects', { upstream, status, host });
}

function redirectsElsewhere(id: string, status: number): Rejected {
  const message = `Upstream \`${id}\` answered ${status}, a redirect outside its base URL. It was not forwarded, because clients would follow it with their keys. Ask the operator to set \`base_url\` to the new host, which is logged, or to set \`redirects: pass\`.`;
  // The next call would be redirected too.
  return rejected({ reason: 'upstream_redirects', message, isPermanent: true });
}

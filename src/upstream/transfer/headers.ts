import { FORGEABLE_HEADERS } from '../../contract/http.ts';
import { offeredEncodings } from '../body/packing.ts';
import { isUnderscoredOverride } from '../operation/readings.ts';
import {
  dropCookies,
  isOurCookie,
  holdsGatewayKey,
  isGatewayKey,
  dropSubprotocols,
  reachesIn,
  unescaped,
} from './tokens.ts';

/** The headers that pass to the upstream, and those that pass back to the caller, with the addresses in them. */

/** Headers that apply to one connection (RFC 9110, 7.6.1). `Connection` may name more. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Deletes, in place, the headers that `Connection` names and those that match. Names are in lower case. */
export function deleteHeaders(
  headers: Headers,
  matches: (name: string, value: string) => boolean,
): void {
  const connection = headers.get('connection');
  const named = connection?.split(',').map((name) => name.trim().toLowerCase()) ?? [];
  // Collect first and delete afterwards, because deleting during iteration skips entries.
  const leaving = [...headers].filter(
    ([name, value]) => matches(name, value) || named.includes(name),
  );
  for (const [name] of leaving) headers.delete(name);
}

/** Headers that Cloudflare or a proxy before Headgate added. They describe the connection to Headgate. */
const OF_INCOMING_CONNECTION = new Set(['cdn-loop', 'forwarded', 'true-client-ip', 'x-real-ip']);

/** The runtime sets these for its own request. */
const OF_THE_RUNTIME = new Set([
  'host',
  'content-length',
  'expect', // An upstream that responds with 100 to it makes the runtime's fetch throw.
  // Every call is sent with `cache: 'no-store'`. A caller that asks for a cached response could receive another
  // caller's.
  'cache-control',
  'pragma',
]);

/** Headers of the WebSocket handshake of one connection. The runtime creates them again for the next one. */
const OF_THE_HANDSHAKE = ['sec-websocket-key', 'sec-websocket-version', 'sec-websocket-extensions'];

/** Turns a request into a WebSocket upgrade, in place. */
export function asUpgrade(headers: Headers): void {
  for (const name of OF_THE_HANDSHAKE) headers.delete(name);
  headers.set('upgrade', 'websocket');
}

/**
 * Returns the headers of a caller's request that the upstream receives. These are the end-to-end headers, without
 * Headgate's own and without any that contains a gateway key (`gatewayKey` is the call's own). Encodings that Headgate
 * cannot decode are not offered. Without an Accept-Encoding, the caller receives plain bytes.
 *
 * `clientAcceptEncoding` is what the caller sent before Cloudflare normalized the header
 * (`request.cf.clientAcceptEncoding`), or null if it was not changed.
 */
export function upstreamRequestHeaders(
  incoming: Headers,
  clientAcceptEncoding: string | null = null,
  gatewayKey: string | null = null,
): Headers {
  const headers = new Headers(incoming);
  dropSubprotocols(headers, (key) => isGatewayKey(key, gatewayKey));
  deleteHeaders(
    headers,
    (name, value) =>
      isNotForUpstream(name) || (name !== 'cookie' && holdsGatewayKey(value, gatewayKey)),
  );
  // Cookies that upstreams have set are forwarded.
  dropCookies(headers, (pair) => isOurCookie(pair) || holdsGatewayKey(pair, gatewayKey));
  const accepted = clientAcceptEncoding ?? headers.get('accept-encoding') ?? '';
  headers.set('accept-encoding', offeredEncodings(accepted));
  return headers;
}

/** Headers that are always forwarded. They describe the body and the accepted responses. */
const UNLISTED = new Set([
  'accept',
  'accept-encoding',
  'anthropic-version',
  'content-encoding',
  'content-type',
  'sec-websocket-protocol',
  'user-agent',
]);

/** Whether a header is forwarded even if the upstream's list of forwarded headers omits it. */
export function mayGoUnlisted(name: string): boolean {
  return UNLISTED.has(name);
}

/** Other headers that may be sent to a host that the caller did not choose. None of them is a credential. */
const ELSEWHERE =
  /^(?:accept-language|anthropic-beta|anthropic-dangerous-direct-browser-access|content-language|idempotency-key|openai-beta|originator|traceparent|tracestate|x-amzn-bedrock-[a-z-]+|x-app|x-client-request-id|x-goog-api-client|x-request-id|x-stainless-[a-z-]+)$/;

/** Whether a header may be sent to a host that the caller did not choose. */
export function mayGoElsewhere(name: string): boolean {
  return UNLISTED.has(name) || ELSEWHERE.test(name);
}

/** Removes, in place, all headers except the allowed ones. */
export function keepHeaders(headers: Headers, mayStay: (name: string) => boolean): void {
  deleteHeaders(headers, (name) => !mayStay(name));
}

function isNotForUpstream(name: string): boolean {
  return (
    HOP_BY_HOP.has(name) ||
    OF_THE_RUNTIME.has(name) ||
    OF_INCOMING_CONNECTION.has(name) ||
    name.startsWith('headgate-') ||
    name.startsWith('x-forwarded-') ||
    isUnderscoredOverride(name) ||
    // Cloudflare's AI Gateway, when used as an upstream, reads its settings from its own headers.
    (name.startsWith('cf-') && !name.startsWith('cf-aig-'))
  );
}

/** Headers in which Cloudflare describes its connection to the client. It sets them again for our caller. */
const OF_THE_CONNECTION = [
  'cf-ray',
  'cf-cache-status',
  'nel',
  'report-to',
  'alt-svc', // It offers another port of the upstream's host, which a caller would try at ours.
];

/** Headers that a browser would apply to the whole origin. The origin also serves the dashboard. */
const OF_THE_ORIGIN = [
  'accept-ch',
  'clear-site-data',
  'refresh',
  'reporting-endpoints',
  'service-worker-allowed',
  'strict-transport-security',
];

/** Lets pages of other origins read a response. Only the operator may allow that. */
const CORS = 'access-control-allow-origin';

/** Headers that only have an effect together with it. Most responses need not be searched for them. */
const WITH_CORS = [
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-private-network',
  'access-control-expose-headers',
  'access-control-max-age',
];

const NOT_FOR_CALLER: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ...OF_THE_CONNECTION,
  ...OF_THE_ORIGIN,
  ...FORGEABLE_HEADERS,
]);

/**
 * Removes from an upstream's headers, in place, those that would affect Headgate or the caller's connection. All
 * end-to-end headers stay, including Content-Encoding, Content-Length and each Set-Cookie.
 */
export function callerResponseHeaders(headers: Headers): Headers {
  // Deleting every possible name takes longer than listing the existing ones.
  const names = [...headers.keys()];
  if (names.includes('connection')) {
    deleteHeaders(headers, (name) => NOT_FOR_CALLER.has(name));
  } else {
    for (const name of names) if (NOT_FOR_CALLER.has(name)) headers.delete(name);
  }
  if (names.includes(CORS)) dropCors(headers);
  if (names.includes('set-cookie')) dropOurCookies(headers);
  return headers;
}

/** Removes, in place, the headers that let pages of other origins read a response. */
export function dropCors(headers: Headers): void {
  headers.delete(CORS);
  for (const name of WITH_CORS) headers.delete(name);
}

function dropOurCookies(headers: Headers): void {
  const all = headers.getSetCookie();
  const theirs = all.filter((cookie) => !reachesIn(cookie));
  if (theirs.length === all.length) return;
  headers.delete('set-cookie');
  for (const cookie of theirs) headers.append('set-cookie', cookie);
}

/**
 * Addresses in response headers. Clients follow them with their Headgate credentials. An address below the upstream's
 * base URL is therefore rewritten to one of ours. Any other address is removed for callers with a gateway key.
 */

/** Headers whose address clients call next, with their credentials. */
const FOLLOWED = [
  'location',
  'operation-location',
  'azure-asyncoperation',
  'x-goog-upload-url',
  'x-goog-upload-control-url',
] as const;

const CONTENT_LOCATION = 'content-location';

const LINK = 'link';

const WITH_ADDRESSES = [...FOLLOWED, CONTENT_LOCATION, LINK];

/** The route of a call, which determines how addresses in its response are rewritten. */
interface AddressRewrite {
  /** URL of the call to the upstream. Relative addresses are resolved against it. */
  readonly askedUrl: string;
  /** Base URL of the upstream, without a trailing slash. */
  readonly baseUrl: string;
  /** The same location at Headgate, without a trailing slash: `https://gateway.example/openai`. */
  readonly ownUrl: string;
  /** The operator's key that the call used. null if it used none. */
  readonly injected: string | null;
  /** Whether addresses outside of the base URL are passed to the caller. */
  readonly passesElsewhere: boolean;
}

interface Readdressed {
  /** Headers to set. null deletes the header. */
  readonly changed: ReadonlyMap<string, string | null>;
  /** Host of the first address outside of the base URL that was removed. null if there is none. */
  readonly elsewhere: string | null;
}

/** Whether a response has any addresses. Most have none. */
export function hasAddresses(headers: Headers): boolean {
  return WITH_ADDRESSES.some((name) => headers.has(name));
}

/**
 * An address in a `Link` header. Quoted strings, such as titles, are matched first so that their content is not taken
 * for an address.
 */
const TARGET = /"(?:[^"\\]|\\.)*"|<([^<>]*)>/g;

export function readdress(headers: Headers, route: AddressRewrite): Readdressed {
  const changed = new Map<string, string | null>();
  let elsewhere: string | null = null;
  for (const name of FOLLOWED) {
    const value = headers.get(name);
    if (value === null) continue;
    const address = ownAddress(value, route);
    changed.set(name, address.text);
    if (address.text === null) elsewhere ??= address.host;
  }
  const content = headers.get(CONTENT_LOCATION);
  if (content !== null) changed.set(CONTENT_LOCATION, rewriteInformational(content, route));
  const link = headers.get(LINK);
  if (link !== null) {
    const rewrite = (all: string, target?: string): string =>
      target === undefined ? all : `<${rewriteInformational(target, route) ?? ''}>`;
    changed.set(LINK, link.replace(TARGET, rewrite));
  }
  return { changed, elsewhere };
}

/** Whether clients follow `Location` after this status. */
export function isRedirect(status: number): boolean {
  return status >= 300 && status <= 399 && status !== 304;
}

interface OwnAddress {
  /** null if the address must not reach the caller. */
  readonly text: string | null;
  readonly host: string;
}

/** Maximum length of a logged host, because upstreams choose it. */
const HOST_MAX = 100;

/** Rewrites an address that clients follow. `text` is null if the caller must not receive it. */
function ownAddress(value: string, route: AddressRewrite): OwnAddress {
  const url = URL.parse(value.trim(), route.askedUrl);
  if (url === null) return { text: null, host: '' };
  const host = url.host.slice(0, HOST_MAX);
  const own = below(url, route);
  if (own !== null) return { text: own, host };
  return { text: route.passesElsewhere && !holdsKey(url.href, route) ? value : null, host };
}

/**
 * Rewrites an informational address if it can be called through Headgate. Any other address stays, unless it contains
 * the operator's key.
 */
function rewriteInformational(value: string, route: AddressRewrite): string | null {
  const url = URL.parse(value.trim(), route.askedUrl);
  const own = url === null ? null : below(url, route);
  return own ?? (holdsKey(value, route) ? null : value);
}

/**
 * Returns the address at Headgate of a URL below the base URL, without the operator's key. null if the URL is not below
 * it.
 */
function below(url: URL, route: AddressRewrite): string | null {
  const base = new URL(route.baseUrl);
  const basePath = base.pathname === '/' ? '' : base.pathname;
  // Servers behind a proxy that terminates TLS often write `http`. The call uses the scheme of the base URL in any
  // case.
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:';
  if (!isWeb || url.hostname !== base.hostname || url.port !== base.port) return null;
  const rest = url.pathname.slice(basePath.length);
  if (!url.pathname.startsWith(basePath) || (rest !== '' && !rest.startsWith('/'))) return null;
  // Collect first and delete afterwards, because deleting during iteration skips entries.
  const keys = [...url.searchParams].filter((pair) => pair.some((text) => holdsKey(text, route)));
  for (const [name, value] of keys) url.searchParams.delete(name, value);
  const own = `${route.ownUrl}${rest}${url.search}${url.hash}`;
  return holdsKey(own, route) ? null : own;
}

/** Whether a text contains the operator's key, plain or escaped. */
function holdsKey(text: string, { injected }: AddressRewrite): boolean {
  return injected !== null && (text.includes(injected) || unescaped(text).includes(injected));
}

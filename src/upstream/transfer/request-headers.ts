import { offeredEncodings } from '../body/packing.ts';
import { isUnderscoredOverride } from '../operation/method-override.ts';
import { dropCookies, isOurCookie } from './our-cookies.ts';
import { holdsGatewayKey, isGatewayKey } from './gateway-key.ts';
import { deleteHeaders, HOP_BY_HOP } from './hop-by-hop.ts';
import { dropSubprotocols } from './subprotocols.ts';

/** Headers that Cloudflare or a proxy before us added: they speak of the way to us. */
const OF_THE_WAY_HERE = new Set(['cdn-loop', 'forwarded', 'true-client-ip', 'x-real-ip']);

/** Set by the runtime for the request that it makes. */
const OF_THE_RUNTIME = new Set([
  'host',
  'content-length',
  'expect', // An upstream that answers 100 to it makes the runtime's fetch throw.
  // As every call goes out with `cache: 'no-store'`. A caller that asks a cache for what it has may get another's.
  'cache-control',
  'pragma',
]);

/** Headers by which one connection agrees on WebSocket: the runtime does so anew on the next one. */
const OF_THE_HANDSHAKE = ['sec-websocket-key', 'sec-websocket-version', 'sec-websocket-extensions'];

/** Makes a request one for a WebSocket, in place. */
export function asUpgrade(headers: Headers): void {
  for (const name of OF_THE_HANDSHAKE) headers.delete(name);
  headers.set('upgrade', 'websocket');
}

/**
 * The headers of a caller's request as the upstream gets them: end-to-end ones alone, without ours, and
 * without any that holds a gateway key; `gatewayKey` is the call's own.
 * Codings that Headgate cannot decode are not offered. Without an Accept-Encoding, the caller receives plain bytes.
 *
 * `clientAcceptEncoding` is what the caller sent before Cloudflare normalised the header
 * (`request.cf.clientAcceptEncoding`); null where nobody changed it.
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
  // Headers that upstreams have set are passed on.
  dropCookies(headers, (pair) => isOurCookie(pair) || holdsGatewayKey(pair, gatewayKey));
  const accepted = clientAcceptEncoding ?? headers.get('accept-encoding') ?? '';
  headers.set('accept-encoding', offeredEncodings(accepted));
  return headers;
}

/** Headers that are always forwarded: they describe the body and the accepted answers. */
const UNLISTED = new Set([
  'accept',
  'accept-encoding',
  'anthropic-version',
  'content-encoding',
  'content-type',
  'sec-websocket-protocol',
  'user-agent',
]);

/** Whether a header is forwarded to an upstream that lists others. */
export function mayGoUnlisted(name: string): boolean {
  return UNLISTED.has(name);
}

/** Other headers that may go to a host that the caller did not name, because none of them is a credential. */
const ELSEWHERE =
  /^(?:accept-language|anthropic-beta|anthropic-dangerous-direct-browser-access|content-language|idempotency-key|openai-beta|originator|traceparent|tracestate|x-amzn-bedrock-[a-z-]+|x-app|x-client-request-id|x-goog-api-client|x-request-id|x-stainless-[a-z-]+)$/;

/** Whether a header may go to a host that the caller did not name. */
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
    OF_THE_WAY_HERE.has(name) ||
    name.startsWith('headgate-') ||
    name.startsWith('x-forwarded-') ||
    isUnderscoredOverride(name) ||
    // Cloudflare's AI Gateway as an upstream takes its settings in headers of its own.
    (name.startsWith('cf-') && !name.startsWith('cf-aig-'))
  );
}

import { offeredEncodings } from '../body/packing.ts';
import { isUnderscoredOverride } from '../operation/method-override.ts';
import { dropCookies, isOurCookie } from './our-cookies.ts';
import { holdsGatewayKey, isGatewayKey } from './gateway-key.ts';
import { deleteHeaders, HOP_BY_HOP } from './hop-by-hop.ts';
import { dropSubprotocols } from './subprotocols.ts';

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

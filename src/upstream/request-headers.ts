import { deleteHeaders, HOP_BY_HOP } from './hop-by-hop.ts';

/** Headers that Cloudflare or a proxy before us added: they speak of the way to us. */
const OF_THE_WAY_HERE = new Set(['cdn-loop', 'forwarded', 'true-client-ip', 'x-real-ip']);

/** Set by the runtime for the request that it makes. */
const OF_THE_RUNTIME = new Set([
  'host',
  'content-length',
  'expect', // An upstream that answers 100 to it makes the runtime's fetch throw.
]);

/**
 * The headers of a caller's request as the upstream gets them: end-to-end ones alone, without ours.
 * Without an Accept-Encoding the caller gets plain bytes; `identity` says so, lest a proxy on the way
 * put in an encoding that the caller never offered to undo.
 *
 * `clientAcceptEncoding` is what the caller sent before Cloudflare normalised the header
 * (`request.cf.clientAcceptEncoding`); null where nobody changed it.
 */
export function upstreamRequestHeaders(
  incoming: Headers,
  clientAcceptEncoding: string | null = null,
): Headers {
  const headers = new Headers(incoming);
  deleteHeaders(headers, isNotForUpstream);
  const accepted = (clientAcceptEncoding ?? headers.get('accept-encoding') ?? '').trim();
  headers.set('accept-encoding', accepted === '' ? 'identity' : accepted);
  return headers;
}

function isNotForUpstream(name: string): boolean {
  return (
    HOP_BY_HOP.has(name) ||
    OF_THE_RUNTIME.has(name) ||
    OF_THE_WAY_HERE.has(name) ||
    name.startsWith('headgate-') ||
    name.startsWith('x-forwarded-') ||
    // Cloudflare's AI Gateway as an upstream takes its settings in headers of its own.
    (name.startsWith('cf-') && !name.startsWith('cf-aig-'))
  );
}

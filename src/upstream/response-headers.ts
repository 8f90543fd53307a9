import { deleteHeaders, HOP_BY_HOP } from './hop-by-hop.ts';

/** What Cloudflare says of its own connection to whoever asked, and so says anew to our caller. */
const OF_THE_CONNECTION = new Set([
  'cf-ray',
  'cf-cache-status',
  'nel',
  'report-to',
  'alt-svc', // It offers another port of the upstream's host, which a caller would look for at ours.
]);

/**
 * The headers of an upstream's response as the caller gets them: everything that is end-to-end,
 * Content-Encoding, Content-Length and each Set-Cookie included. Names of ours are removed, so that
 * an upstream cannot speak as Headgate.
 */
export function callerResponseHeaders(upstream: Headers): Headers {
  const headers = new Headers(upstream);
  deleteHeaders(
    headers,
    (name) => HOP_BY_HOP.has(name) || OF_THE_CONNECTION.has(name) || name.startsWith('headgate-'),
  );
  return headers;
}

import { deleteHeaders, HOP_BY_HOP } from './hop-by-hop.ts';

/** What Cloudflare says of its own connection to whoever asked, and so says anew to our caller. */
const OF_THE_CONNECTION = [
  'cf-ray',
  'cf-cache-status',
  'nel',
  'report-to',
  'alt-svc', // It offers another port of the upstream's host, which a caller would look for at ours.
];

/** Every header that Headgate answers with: an upstream must not speak as Headgate. */
const OURS = [
  'headgate-groups',
  'headgate-lease',
  'headgate-reason',
  'headgate-tries',
  'headgate-wait-ms',
];

const NOT_FOR_CALLER: ReadonlySet<string> = new Set([...HOP_BY_HOP, ...OF_THE_CONNECTION, ...OURS]);

/**
 * Leaves of an upstream's headers, in place, what the caller gets: everything that is end-to-end,
 * Content-Encoding, Content-Length and each Set-Cookie included.
 */
export function callerResponseHeaders(headers: Headers): Headers {
  if (headers.has('connection')) {
    deleteHeaders(headers, (name) => NOT_FOR_CALLER.has(name));
  } else {
    // By name, though there are many: to list the headers that there are costs a small call much more.
    for (const name of NOT_FOR_CALLER) headers.delete(name);
  }
  return headers;
}

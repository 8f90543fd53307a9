import { FORGEABLE_HEADERS } from '../../contract/answer-headers.ts';
import { deleteHeaders, HOP_BY_HOP } from './hop-by-hop.ts';
import { reachesIn } from './our-cookies.ts';

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

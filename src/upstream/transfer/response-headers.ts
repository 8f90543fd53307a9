import { FORGEABLE_HEADERS } from '../../contract/answer-headers.ts';
import { deleteHeaders, HOP_BY_HOP } from './hop-by-hop.ts';
import { reachesIn } from './our-cookies.ts';

/** Headers in which Cloudflare speaks of its own connection to whoever asked, and so speaks anew to our caller. */
const OF_THE_CONNECTION = [
  'cf-ray',
  'cf-cache-status',
  'nel',
  'report-to',
  'alt-svc', // It offers another port of the upstream's host, which a caller would look for at ours.
];

/**
 * Headers that a browser would keep or obey for the whole origin, which is not the upstream's alone: the dashboard
 * is there, too.
 */
const OF_THE_ORIGIN = [
  'accept-ch',
  'clear-site-data',
  'refresh',
  'reporting-endpoints',
  'service-worker-allowed',
  'strict-transport-security',
];

/** By which alone another origin may read an answer: it is the operator who says which. */
const CORS = 'access-control-allow-origin';

/** Headers that go with it. Without it these mean nothing, so most answers need not be searched for them. */
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
 * Leaves of an upstream's headers, in place, what the caller gets: everything that is end-to-end,
 * Content-Encoding, Content-Length and each Set-Cookie included, but for what would reach into Headgate.
 */
export function callerResponseHeaders(headers: Headers): Headers {
  // Deleting every name that an answer could have takes longer than listing those that it has.
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

/** Takes out, in place, what lets pages of other origins read an answer. */
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

import { REPORTED_HEADERS, SERVED_METHODS, type AnswerHeaders } from '../../contract/http.ts';
import { dropCors } from '../../upstream/transfer/headers.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { providerOf } from '../../providers/catalog.ts';
import type { RateRoom } from '../../core/parts/rates.ts';

/** Headers of responses: CORS, remaining rate limits, and the request id of the upstream. */

/** Headers by which providers identify a call in support requests. */
const REQUEST_IDS = ['x-request-id', 'request-id'];

const EXPOSED = [...REPORTED_HEADERS, ...REQUEST_IDS].join(', ');

/**
 * The CORS headers for a browser of a configured origin. null for all other requests. They are written here because
 * middleware would wrap the response again, which breaks streamed, compressed bodies.
 */
export function corsHeaders(request: Request, origins: readonly string[]): Headers | null {
  // Most deployments list none, and reading a header costs more than checking the list.
  if (origins.length === 0) return null;
  const origin = request.headers.get('origin');
  if (origin === null || !origins.includes(origin)) return null;
  return new Headers({
    'access-control-allow-origin': origin,
    'access-control-expose-headers': EXPOSED,
    vary: 'origin',
  });
}

/** Adds the headers to an answer in place. The upstream's own `Vary` is kept. */
export function addCors(headers: Headers, cors: Headers): void {
  // The upstream's other CORS headers would be taken for ours.
  dropCors(headers);
  for (const [name, value] of cors) {
    if (name === 'vary') headers.append(name, value);
    else headers.set(name, value);
  }
}

/** The answer to a preflight of a configured origin. null if the request is not one. */
export function preflightResponse(request: Request, cors: Headers | null): Response | null {
  if (cors === null || request.method !== 'OPTIONS') return null;
  const method = request.headers.get('access-control-request-method');
  if (method === null) return null;
  const headers = new Headers(cors);
  const isServed = SERVED_METHODS.includes(method);
  headers.set('access-control-allow-methods', isServed ? method : SERVED_METHODS.join(', '));
  const requested = request.headers.get('access-control-request-headers');
  if (requested !== null) headers.set('access-control-allow-headers', requested);
  headers.set('access-control-max-age', '600');
  return new Response(null, { status: 204, headers });
}

/** Headers in which most providers name a call. */
const COMMON = ['x-request-id', 'request-id'] as const;

/** Maximum length of an id. A longer one is ignored. */
const LENGTH_MAX = 128;

/** Upstreams never change, so the headers of each are looked up once. */
const headersOf = new WeakMap<Upstream, readonly string[]>();

function headersAt(upstream: Upstream): readonly string[] {
  let names = headersOf.get(upstream);
  if (names === undefined) {
    const own = providerOf(upstream)?.requestId?.header;
    names = own === undefined ? COMMON : [own, ...COMMON];
    headersOf.set(upstream, names);
  }
  return names;
}

/** The upstream's own id of a call, which its support needs. null if the answer has none. */
export function requestIdOf(headers: Headers, upstream: Upstream): string | null {
  for (const name of headersAt(upstream)) {
    const id = headers.get(name);
    if (id !== null && id !== '' && id.length <= LENGTH_MAX) return id;
  }
  return null;
}

/** The limits of requests. The others count tokens. */
const OF_REQUESTS: ReadonlySet<RateRoom['name']> = new Set(['rpm', 'rpd']);

const FAMILY = 'x-ratelimit-';

/**
 * Writes the rate limits in the headers of OpenAI, which its clients read: one limit of requests and one of tokens,
 * each the one with the smallest share left. Writes nothing if the upstream has sent such headers, because a mix of
 * both would be wrong.
 */
export function rateHeaders(rooms: readonly RateRoom[], theirs: Headers): AnswerHeaders {
  if ([...theirs.keys()].some((name) => name.startsWith(FAMILY))) return {};
  const requests = tightest(rooms.filter(({ name }) => OF_REQUESTS.has(name)));
  const tokens = tightest(rooms.filter(({ name }) => !OF_REQUESTS.has(name)));
  return {
    ...(requests !== undefined && {
      'x-ratelimit-limit-requests': String(requests.limit),
      'x-ratelimit-remaining-requests': String(requests.left),
      'x-ratelimit-reset-requests': durationOf(requests.resetMs),
    }),
    ...(tokens !== undefined && {
      'x-ratelimit-limit-tokens': String(tokens.limit),
      'x-ratelimit-remaining-tokens': String(tokens.left),
      'x-ratelimit-reset-tokens': durationOf(tokens.resetMs),
    }),
  };
}

function tightest(rooms: readonly RateRoom[]): RateRoom | undefined {
  return rooms.toSorted((a, b) => shareOf(a) - shareOf(b))[0];
}

function shareOf({ left, limit }: RateRoom): number {
  return limit === 0 ? 0 : left / limit;
}

/** Writes a duration as Go does, in whole seconds, rounded up: `0s`, `59s`, `6m0s`, `24h0m0s`. */
function durationOf(ms: number): string {
  const all = Math.ceil(ms / 1_000);
  const [hours, minutes, seconds] = [Math.floor(all / 3_600), Math.floor(all / 60) % 60, all % 60];
  if (hours > 0) return `${hours}h${minutes}m${seconds}s`;
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`;
}

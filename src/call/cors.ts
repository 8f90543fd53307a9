import { REPORTED_HEADERS } from '../contract/answer-headers.ts';
import { SERVED_METHODS } from '../contract/methods.ts';
import { dropCors } from '../upstream/transfer/response-headers.ts';

/** By which providers know a call again, when they are asked about it. */
const REQUEST_IDS = ['x-request-id', 'request-id'];

const EXPOSED = [...REPORTED_HEADERS, ...REQUEST_IDS].join(', ');

/**
 * The CORS headers for a browser of a configured origin; null for everybody else. Written out here
 * because middleware would wrap the response anew, and a streamed, compressed body would not survive.
 */
export function corsHeaders(request: Request, origins: readonly string[]): Headers | null {
  // Most deployments list none, and a header costs more to read than the list.
  if (origins.length === 0) return null;
  const origin = request.headers.get('origin');
  if (origin === null || !origins.includes(origin)) return null;
  return new Headers({
    'access-control-allow-origin': origin,
    'access-control-expose-headers': EXPOSED,
    vary: 'origin',
  });
}

/** Adds them to an answer, in place. `Vary` says more than ours: what the upstream's says stays. */
export function addCors(headers: Headers, cors: Headers): void {
  // What the upstream says beside an origin of its own would be taken for ours.
  dropCors(headers);
  for (const [name, value] of cors) {
    if (name === 'vary') headers.append(name, value);
    else headers.set(name, value);
  }
}

/** The answer to a preflight of a configured origin; null: it is none. */
export function preflightResponse(request: Request, cors: Headers | null): Response | null {
  if (cors === null || request.method !== 'OPTIONS') return null;
  const method = request.headers.get('access-control-request-method');
  if (method === null) return null;
  const headers = new Headers(cors);
  const isServed = SERVED_METHODS.includes(method);
  headers.set('access-control-allow-methods', isServed ? method : SERVED_METHODS.join(', '));
  const asked = request.headers.get('access-control-request-headers');
  if (asked !== null) headers.set('access-control-allow-headers', asked);
  headers.set('access-control-max-age', '600');
  return new Response(null, { status: 204, headers });
}

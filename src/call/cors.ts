import { REPORTED_HEADERS } from '../contract/answer-headers.ts';
import { SERVED_METHODS } from '../contract/methods.ts';
import { dropCors } from '../upstream/transfer/headers.ts';

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

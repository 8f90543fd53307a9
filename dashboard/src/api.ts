import type * as z from 'zod';
import type { problemSchema } from '../../src/contract/shared-shapes.ts';
import { createAdminClient } from '../../src/admin/client.ts';

/** Error body of every admin route (RFC 9457). */
export type Problem = z.output<typeof problemSchema>;

/** Called when the server rejects the session, so that the page can ask to sign in. */
let onSignedOut: () => void = () => undefined;

export function whenSignedOut(act: () => void): void {
  onSignedOut = act;
}

/**
 * Client of the admin API, authenticated by the cookie of this browser. Failures resolve with a problem. If the server
 * is unreachable, the problem has status 0.
 */
export const api = createAdminClient({
  baseUrl: '/admin/api',
  headers: { 'headgate-admin': '1' },
  fetch: async (url, init) => {
    try {
      const response = await fetch(url, { ...init, credentials: 'same-origin' });
      if (response.status === 401 && !url.endsWith('/session')) onSignedOut();
      // Reads the body here, so that an interrupted response becomes a problem too.
      const text = await response.text();
      return isOurs(response, text)
        ? new Response(text, response)
        : problemOf(
            response.status,
            `The response (status ${response.status}) came from a proxy in front of Headgate.`,
            init.method,
          );
    } catch {
      return problemOf(0, 'Headgate is unreachable.', init.method);
    }
  },
});

/** Whether a response is from the admin API. Proxies in front of it answer with pages of their own. */
function isOurs(response: Response, text: string): boolean {
  const type = response.headers.get('content-type') ?? '';
  if (!/^[^;]*[/+]json\s*(?:;|$)/i.test(type)) return response.ok && /^[^;]*yaml/i.test(type);
  const body: unknown = JSON.parse(text);
  return typeof body === 'object' && body !== null;
}

function problemOf(status: number, detail: string, method = 'GET'): Response {
  const rest =
    method === 'GET'
      ? 'The data shown may be outdated.'
      : 'The change may not have been saved. Try again.';
  const problem: Problem = {
    type: 'about:blank',
    title: 'Unreachable',
    status,
    detail: `${detail} ${rest}`,
  };
  return new Response(JSON.stringify(problem), {
    status: 503,
    headers: { 'content-type': 'application/problem+json' },
  });
}

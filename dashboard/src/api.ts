import type * as z from 'zod';
import type { problemSchema } from '../../src/contract/admin/answer-schemas.ts';
import { createAdminClient } from '../../src/contract/admin/client.ts';

/** RFC 9457, as every admin route answers when it cannot do what was asked. */
export type Problem = z.output<typeof problemSchema>;

/** Told when the server no longer knows who asks, so that the page can ask to sign in. */
let onSignedOut: () => void = () => undefined;

/** Names what happens when a session has ended. */
export function whenSignedOut(act: () => void): void {
  onSignedOut = act;
}

/**
 * The admin API, by the cookie of this browser. Resolves with the problem where there is one; a server
 * that cannot be reached is a problem too, of status 0.
 */
export const api = createAdminClient({
  baseUrl: '/admin/api',
  headers: { 'headgate-admin': '1' },
  fetch: async (url, init) => {
    try {
      const response = await fetch(url, { ...init, credentials: 'same-origin' });
      if (response.status === 401 && !url.endsWith('/session')) onSignedOut();
      // Read here, so that an answer that breaks off is a problem as well.
      const text = await response.text();
      return isOurs(response, text)
        ? new Response(text, response)
        : problemOf(
            response.status,
            `Not Headgate but something before it answered, with status ${response.status}.`,
            init.method,
          );
    } catch {
      return problemOf(0, 'Headgate cannot be reached.', init.method);
    }
  },
});

/** Whether an answer is one of the admin API: a proxy on the way answers with pages of its own. */
function isOurs(response: Response, text: string): boolean {
  const type = response.headers.get('content-type') ?? '';
  if (!/^[^;]*[/+]json\s*(?:;|$)/i.test(type)) return response.ok && /^[^;]*yaml/i.test(type);
  const body: unknown = JSON.parse(text);
  return typeof body === 'object' && body !== null;
}

function problemOf(status: number, detail: string, method = 'GET'): Response {
  const rest =
    method === 'GET'
      ? 'What is shown may be old.'
      : 'Nothing was changed as far as is known; try again.';
  const problem: Problem = {
    type: 'about:blank',
    title: 'Out of reach',
    status,
    detail: `${detail} ${rest}`,
  };
  return new Response(JSON.stringify(problem), {
    status: 503,
    headers: { 'content-type': 'application/problem+json' },
  });
}

import { createAdminClient, type AdminClient } from '../../../src/admin/client.ts';
import { noteVersion, worker } from '../support/worker.ts';

const ORIGIN = 'https://headgate.test';

/** A client of the admin API with those headers, over the whole Worker. */
export function clientWith(headers: Record<string, string>): AdminClient {
  return createAdminClient({
    baseUrl: `${ORIGIN}/admin/api`,
    headers,
    fetch: (async (url: string, init?: RequestInit) => {
      const response = await worker.fetch(url, init as never);
      const isChange = (init?.method ?? 'GET') !== 'GET';
      const isJson = response.headers.get('content-type')?.includes('application/json') === true;
      if (isChange && isJson) noteVersion(await response.clone().json());
      return response;
    }) as never,
  });
}

/** A client with a token. */
export function clientOf(token: string): AdminClient {
  return clientWith({ authorization: `Bearer ${token}` });
}

/** A client with the `ADMIN_TOKEN`. */
export const asAdmin = clientOf('test-admin-token');

/** The body of an answer that went well, or the end of the test. */
export function bodyOf<Body>(
  result:
    | { readonly ok: true; readonly body: Body }
    | {
        readonly ok: false;
        readonly status: number;
        readonly problem: { readonly detail: string };
      },
): Body {
  if (result.ok) return result.body;
  throw new Error(`${result.status}: ${result.problem.detail}`);
}

import type { AdminClient } from '../../src/admin/client.ts';
import { createAdminClient } from '../../src/admin/client.ts';
import type { SentRequests } from './sent.ts';

export interface CanaryTarget {
  /** Base URL, without a trailing slash. */
  readonly url: string;
  /** Token of the admin API with the role admin. Never printed. */
  readonly token: string;
  /** Gateway key of the calls. null if the deployment requires none. */
  readonly gatewayKey: string | null;
  /** Provider key of calls that reach the provider. null means that the operator's key is used. */
  readonly providerKey: string | null;
}

const ADMIN_WAIT_MS = 30_000;

export function adminOf({ url, token }: CanaryTarget, sent: SentRequests): AdminClient {
  return createAdminClient({
    baseUrl: `${url}/admin/api`,
    headers: { authorization: `Bearer ${token}` },
    fetch(address, init) {
      sent.admin_requests += 1;
      return fetch(address, { ...init, signal: AbortSignal.timeout(ADMIN_WAIT_MS) });
    },
  });
}

import type { AdminClient } from '../../src/contract/admin/client.ts';
import { createAdminClient } from '../../src/contract/admin/client.ts';
import type { SentRequests } from './sent.ts';

/** A deployment, and who asks it. */
export interface CanaryTarget {
  /** Base URL, without a trailing slash. */
  readonly url: string;
  /** Opens the admin API as an admin. Never printed. */
  readonly token: string;
  /** A gateway key for the calls; null: this deployment wants none. */
  readonly gatewayKey: string | null;
  /** The provider's key for calls that reach it; null: the operator's is used. */
  readonly providerKey: string | null;
}

/** How long an answer of the admin API may take. */
const ADMIN_WAIT_MS = 30_000;

/** Makes a client of the admin API that counts what it asks. */
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

import type { Upstream } from '../../contract/config/upstream.ts';
import type { Caller } from '../identity/authenticate.ts';

/**
 * Tells whether calls of a caller to an upstream go by members: the operator's keys go out behind a gateway key, and
 * nobody's own is moved. A key that was brought is the caller's own only where it would go out: not at an upstream that
 * takes none, where callers without a gateway key go by members too, nor at another one than it was sent to (`isSpilled`).
 */
export function goesByMembers(
  { gatewayKeyId, credentials }: Pick<Caller, 'gatewayKeyId' | 'credentials'>,
  { isKeyless }: Pick<Upstream, 'isKeyless'>,
  isSpilled = false,
): boolean {
  if (isKeyless) return true;
  return gatewayKeyId !== null && (credentials.providerKey === null || isSpilled);
}

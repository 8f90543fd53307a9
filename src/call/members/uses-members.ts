import type { Upstream } from '../../contract/config/upstream.ts';
import type { Caller } from '../identity/authenticate.ts';

/**
 * Returns whether calls of a caller to an upstream are routed to members. The operator's keys are used only behind a
 * gateway key, and a call with its caller's own key is never moved.
 *
 * A provided key does not count as the caller's own if it would not be sent. That applies to a keyless upstream, where
 * callers without a gateway key are routed to members too. It also applies to another upstream than the call named
 * (`isSpilled`).
 */
export function goesByMembers(
  { gatewayKeyId, credentials }: Pick<Caller, 'gatewayKeyId' | 'credentials'>,
  { isKeyless }: Pick<Upstream, 'isKeyless'>,
  isSpilled = false,
): boolean {
  if (isKeyless) return true;
  return gatewayKeyId !== null && (credentials.providerKey === null || isSpilled);
}

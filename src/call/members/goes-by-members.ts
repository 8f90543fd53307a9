import type { Caller } from '../identity/authenticate.ts';

/** Tells whether calls of a caller go by members: the operator's keys go out behind a gateway key, and nobody's own is moved. */
export function goesByMembers({ gatewayKeyId, credentials }: Caller): boolean {
  return gatewayKeyId !== null && credentials.providerKey === null;
}

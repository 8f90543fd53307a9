import type { Upstream } from '../../contract/config/upstream.ts';
import { mayUse } from '../../routing/key-access.ts';
import { keyFor, type Caller } from '../identity/authenticate.ts';
import type { AuthenticatedCall } from './call.ts';

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

/**
 * Chooses the key of a call that takes no slot, and so is not granted at a member. If its upstream has no secret, the
 * call uses that of the first member there, in a group that would accept it.
 */
export function keyWithoutSlot(
  upstream: Upstream,
  model: string | null,
  call: AuthenticatedCall,
): ReturnType<typeof keyFor> {
  const { caller, table, env } = call;
  const secret = upstream.secret ?? secretOfMember(upstream, model, call);
  return keyFor(
    secret === upstream.secret ? upstream : { ...upstream, secret },
    caller,
    table,
    env,
  );
}

/**
 * The name of the secret that a member at an upstream provides for calls of a caller that take no slot. `model` is null
 * if they name none. Returns null if there is no such secret.
 */
export function secretOfMember(
  upstream: Upstream,
  model: string | null,
  { caller, table: { routes } }: Pick<AuthenticatedCall, 'caller' | 'table'>,
): string | null {
  if (!routes.hasMembers || caller.gatewayKeyId === null) return null;
  if (!goesByMembers(caller, upstream)) return null;
  const { keyIds, key } = caller;
  return routes.secretOfMember({ upstream, model, keyIds }, (group) => mayUse(key, group, true));
}

import type { Upstream } from '../../contract/config/upstream.ts';
import { mayUse } from '../../routing/key-access.ts';
import type { AuthenticatedCall } from '../call.ts';
import { keyFor } from '../identity/authenticate.ts';
import { goesByMembers } from './uses-members.ts';

/**
 * Chooses the key of a call that takes no slot. Nobody grants it a member: where its upstream has no secret, it goes
 * with that of the first member there, of a group that would take such a call.
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
 * Name of the secret that a member at an upstream gives to calls of a caller that take no slot, and name this model or none
 * (null); null: there is none.
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

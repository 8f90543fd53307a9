import { closedRoute, entryAt, forbiddenUpstream } from '../../routing/key-access.ts';
import { hasMembers } from '../../routing/members.ts';
import type { AuthenticatedCall } from '../call.ts';
import { keyFor, type UpstreamKey } from '../identity/authenticate.ts';
import type { Located } from '../locate.ts';
import { goesByMembers } from '../members/uses-members.ts';
import { rejected, type Rejected } from '../result.ts';
import { unserved } from './upgrade.ts';

/** The key of a connection for turns, if its caller may have one. */
export async function connectionKey(
  known: AuthenticatedCall,
  located: Located,
): Promise<{ readonly kind: 'key'; readonly key: UpstreamKey } | Rejected> {
  // All turns of a connection run at one upstream. Callers whose calls are routed to members have to use HTTP.
  if (mayGoByMembers(known, located)) return rejected(unserved(known.url));
  const found = await keyFor(located.upstream, known.caller, known.table, known.env);
  return found.kind === 'rejected' ? found : (closedFor(known, located, found.key) ?? found);
}

function mayGoByMembers({ caller, table }: AuthenticatedCall, { upstream }: Located): boolean {
  const { routes, snapshot } = table;
  if (!routes.hasMembers || !goesByMembers(caller, upstream)) return false;
  const names = new Set(routes.groupsOf(upstream));
  return snapshot.config.groups.some((group) => hasMembers(group) && names.has(group.name));
}

/** Rejects a connection that its caller may not use. null if it may, as far as that is known without a model. */
function closedFor(
  call: AuthenticatedCall,
  located: Located,
  { injected }: UpstreamKey,
): Rejected | null {
  const { key, credentials } = call.caller;
  const { upstream } = located;
  const entry = entryAt(upstream, injected, credentials.providerKey);
  const shut =
    (entry === null ? null : closedRoute(key, located, call, entry)) ??
    (key === null ? null : forbiddenUpstream(key, upstream, call.table.routes));
  return shut === null ? null : rejected(shut);
}

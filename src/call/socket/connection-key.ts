import type { GroupConfig } from '../../contract/config/config.ts';
import { closedRoute, entryAt, forbiddenUpstream } from '../../routing/key-access.ts';
import { hasMembers, membersOf, siblingPath } from '../../routing/members.ts';
import { classifyTurn } from '../../upstream/operation/upgrades.ts';
import type { AuthenticatedCall } from '../call.ts';
import { keyFor, type UpstreamKey } from '../identity/authenticate.ts';
import type { Located } from '../locate.ts';
import { goesByMembers } from '../members/uses-members.ts';
import { rejected, type Rejected } from '../result.ts';
import { unserved } from './upgrade.ts';

interface ConnectionKey {
  readonly kind: 'key';
  /** null if the connection has none of its own, because its turns go to members. */
  readonly key: UpstreamKey | null;
}

/** The key of a connection for turns, if its caller may have one. */
export async function connectionKey(
  known: AuthenticatedCall,
  located: Located,
): Promise<ConnectionKey | Rejected> {
  const { caller, table, env } = known;
  const groups = groupsWithMembers(known, located);
  if (groups.length > 0) {
    const isServed = groups.some((group) => mayServeTurns(known, located, group));
    if (!isServed) return rejected(unserved(known.url));
    const shut =
      caller.key === null ? null : forbiddenUpstream(caller.key, located.upstream, table.routes);
    return shut === null ? { kind: 'key', key: null } : rejected(shut);
  }
  const found = await keyFor(located.upstream, caller, table, env);
  return found.kind === 'rejected' ? found : (closedFor(known, located, found.key) ?? found);
}

/** The groups to whose members turns may go. */
function groupsWithMembers({ caller, table }: AuthenticatedCall, { upstream }: Located) {
  const { routes, snapshot } = table;
  if (!routes.hasMembers || !goesByMembers(caller, upstream)) return [];
  const names = new Set(routes.groupsOf(upstream));
  return snapshot.config.groups.filter((group) => hasMembers(group) && names.has(group.name));
}

/** Whether the upstream of a member serves turns. */
function mayServeTurns(
  { query, table }: AuthenticatedCall,
  { upstream: from, path }: Located,
  group: GroupConfig,
): boolean {
  return membersOf(group).some(({ config }) => {
    const upstream = table.upstreams.get(config.upstream);
    const there = upstream === undefined ? null : siblingPath(from, upstream, path, null);
    if (upstream === undefined || there === null) return false;
    return classifyTurn(there, query, upstream).socket === 'turns';
  });
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

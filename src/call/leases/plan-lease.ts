import { quoted } from '../../core/words/quoted.ts';
import type { GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import { forbiddenFor, forbiddenLease } from '../../routing/key-access.ts';
import { byTier, membersOf, type GroupMember } from '../../routing/members.ts';
import type { Placement, RoutedCall } from '../../routing/placement.ts';
import { LEASE } from '../../upstream/operation/operations-table.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import { callRules } from '../plan/call-rules.ts';
import { accountOf, keyFor, missingKey } from '../identity/authenticate.ts';
import { locatedOf } from './lease-call.ts';
import type { Located } from '../request/locate.ts';
import { isPriced } from '../../routing/group-limits.ts';
import { measureAsReported, type Metering } from '../plan/metering.ts';
import { membersFor, type MemberPlan, type MemberRoute } from '../plan/member-plan.ts';
import { candidateOf, routedCall, type Candidate } from '../plan/plan.ts';
import { rejected, type Rejected } from '../results/result.ts';
import { placementOf } from './held-pools.ts';
import type { LeaseToken, WantedLease } from './lease-token.ts';

/** The upstream of a lease in a group without an upstream. Nothing is called there. */
export const NOWHERE: Upstream = {
  id: 'leases',
  baseUrl: 'https://leases.invalid',
  dialect: 'opaque',
  keyPlace: 'bearer',
  openaiAt: null,
  anthropicAt: null,
  models: [],
  aliases: {},
  secret: null,
  isKeyless: false,
  allow: [],
  keyNamesAccount: true,
  accountBy: 'auto',
  prices: {},
  limitHeaders: 'auto',
  injectsUsage: false,
  turnConnectionsEach: 1,
  requiresKey: 'auto',
  redirects: 'rewrite',
  requestHeaders: null,
  sockets: 'none',
  via: null,
};

export async function planLease(
  call: AuthenticatedCall,
  wanted: WantedLease,
): Promise<Candidate | Rejected> {
  const { caller, table, env } = call;
  const notAllowed = forbiddenLease(caller.key, table.snapshot.config);
  if (notAllowed !== null) return rejected(notAllowed);
  const upstream = upstreamFor(call, wanted);
  if (upstream === null) return rejected(unknownUpstream(wanted.upstream ?? ''));
  // A group may match several upstreams, so one that requires a key is enough.
  const isStrict = upstream === NOWHERE && table.needKey !== 'none';
  const missing = isStrict ? missingKey({ ...upstream, requiresKey: true }, caller, table) : null;
  if (missing !== null) return missing;
  const found = await keyFor(upstream, caller, table, env);
  if (found.kind === 'rejected') return found;
  const { key } = found;
  call.found.located = locatedOf(call, upstream.id, wanted.model);
  const model = wanted.model ?? null;
  const at = { upstream, path: null, operation: LEASE, model };
  const account = await accountOf(call, upstream, key);
  const routed: RoutedCall = { ...routedCall(call, at, key), account };
  const placed =
    wanted.group === undefined
      ? table.routes.place(routed)
      : table.routes.placeIn(wanted.group, routed);
  if (placed === null) return rejected(unknownGroup(wanted.group ?? ''));
  call.found.placements = placed;
  const forbidden = caller.key === null ? null : forbiddenFor(caller.key, placed, wanted.group);
  if (forbidden !== null) return rejected(forbidden);
  const located = locatedAt(upstream, model);
  const isByMembers = caller.credentials.providerKey === null || upstream.isKeyless;
  const members = isByMembers
    ? membersFor('lease', placed, (group) => planMembers(call, located, group))
    : null;
  if (members?.kind === 'rejected') return members;
  return candidateOf({ call, located, key, routed, spilledFrom: null, members }, placed);
}

/** The usage that a lease reserves. null if none of its groups counts tokens or cost. */
export function meteringOf(
  { located, rules }: Pick<Candidate, 'located' | 'rules'>,
  wanted: WantedLease,
): Metering | null {
  return rules.isMetered ? measureAsReported(located, estimateOf(wanted)) : null;
}

/** Rejects a holder whose key may no longer take leases, or not in these groups. null if it may. */
export function forbiddenHold(
  call: AuthenticatedCall,
  { pools, wanted }: LeaseToken,
): Rejected | null {
  const placements = pools.map((hold) => placementOf(call, hold));
  return forbiddenIn(call, placements, wanted.group);
}

/**
 * Rejects a caller whose key may not take leases, or not in these groups. `named` is the group that it requested by
 * name.
 */
export function forbiddenIn(
  { caller: { key }, table }: Pick<AuthenticatedCall, 'caller' | 'table'>,
  placements: readonly Placement[],
  named: string | undefined,
): Rejected | null {
  const reply =
    forbiddenLease(key, table.snapshot.config) ??
    (key === null ? null : forbiddenFor(key, placements, named));
  return reply === null ? null : rejected(reply);
}

/** The upstream by which a lease is counted and priced, and its reports are read. null if there is none. */
export function upstreamFor(
  { table }: Pick<AuthenticatedCall, 'table'>,
  { group, upstream }: WantedLease,
): Upstream | null {
  if (upstream !== undefined) return table.upstreams.get(upstream) ?? null;
  const config = table.snapshot.config.groups.find(({ name }) => name === group);
  const ids = config === undefined ? [] : upstreamsNamed(config);
  return ids.map((id) => table.upstreams.get(id)).find((one) => one !== undefined) ?? NOWHERE;
}

/** A lease as a located call, which is never sent. */
export function locatedAt(upstream: Upstream, model: string | null): Located {
  const { dialect: shape } = upstream;
  return {
    kind: 'located',
    upstream,
    path: '/',
    operation: { name: LEASE, shape, limited: true, model: { from: 'none' } },
    model,
    isProven: true,
    headerModel: null,
    chosenBy: null,
    isStream: false,
  };
}

export function estimateOf({ estimate }: WantedLease): Parameters<typeof measureAsReported>[1] {
  return {
    // No call has an input of 0 tokens. Accepting 0 would make leases free.
    inputTokens: (estimate?.input_tokens ?? 0) > 0 ? (estimate?.input_tokens ?? null) : null,
    outputTokens: estimate?.output_tokens ?? null,
  };
}

/** The upstreams that a group names: those of its members, or the single one that it matches. */
function upstreamsNamed(config: GroupConfig): string[] {
  const ofMembers = byTier(membersOf(config)).map(({ config: { upstream } }) => upstream);
  const [only, ...others] = config.match.upstreams;
  const isOne = only !== undefined && others.length === 0 && !only.includes('*');
  return isOne ? [...ofMembers, only] : ofMembers;
}

/** Plans at which members a lease may be held. Its holder calls them, with keys of its own. */
function planMembers(
  { table }: AuthenticatedCall,
  located: Located,
  config: GroupConfig,
): MemberPlan {
  const names = table.routes.namesOf(located.upstream, located.model);
  const places = new Map<string, MemberRoute>();
  const impossible: string[] = [];
  for (const member of membersOf(config)) {
    const at = locatedAtMember(table, member, names, located);
    if (at === null || !isPriced(at, config, member.config)) impossible.push(member.id);
    else places.set(member.id, routeOf(member, at, located.upstream));
  }
  return { kind: 'members', group: config.name, places, impossible };
}

function routeOf(member: GroupMember, located: Located, calledAt: Upstream): MemberRoute {
  return {
    kind: 'place',
    id: member.id,
    member,
    located,
    calledAt,
    injected: null,
    bodyModel: null,
  };
}

/** A lease at the upstream of a member. null if that upstream was removed. `names` are those of its model. */
function locatedAtMember(
  { upstreams }: RoutingTable,
  { config, models }: GroupMember,
  names: readonly string[],
  { model }: Located,
): Located | null {
  const upstream = upstreams.get(config.upstream);
  const named = names.map((name) => models.get(name)).find((name) => name !== undefined);
  return upstream === undefined ? null : locatedAt(upstream, named ?? model);
}

/** A lease that is held, as the driver sees a call: its rules in the groups whose slots it holds, and its member. */
export function planHeld(
  call: AuthenticatedCall,
  { wanted, pools, member: id }: LeaseToken,
): Pick<Candidate, 'rules' | 'located' | 'members' | 'member'> {
  const upstream = upstreamFor(call, wanted) ?? NOWHERE;
  const located = locatedAt(upstream, wanted.model ?? null);
  const placements = pools.map((hold) => placementOf(call, hold));
  const at = pools.findIndex(({ lease }) => lease.member !== undefined);
  const config = placements[at]?.config ?? null;
  const rules = callRules(placements, pools[at]?.lease.group ?? null);
  const members = config === null ? null : planMembers(call, located, config);
  const member = members?.places.get(id ?? '') ?? null;
  return { rules, located: member?.located ?? located, members, member };
}

function unknownUpstream(id: string): Rejected['reply'] {
  const message = `There is no upstream ${quoted(id)}. Set \`upstream\` to the id of a configured upstream.`;
  return { reason: 'upstream_unknown', message };
}

function unknownGroup(name: string): Rejected['reply'] {
  const message = `There is no group ${quoted(name)} for this key. Set \`group\` to a configured group. Automatic groups are selected by \`upstream\` and \`model\`.`;
  return { reason: 'group_unknown', message };
}

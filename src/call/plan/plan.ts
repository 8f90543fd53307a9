import type { ErrorReply } from '../../contract/reasons.ts';
import { closedRoute, entryAt, forbiddenFor, forbiddenUpstream } from '../../routing/key-access.ts';
import { hashedPlacements, mayHash } from '../../routing/placed-call.ts';
import { ownPartition } from '../../routing/pool.ts';
import type { Placement, RoutedCall } from '../../routing/placement.ts';
import { fingerprint } from '../../runtime/secrets.ts';
import { hiddenKeyIn } from '../../upstream/transfer/credentials.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { foreignPage, type AuthenticatedCall } from '../request/call.ts';
import { accountOf, keyFor, missingKey, type UpstreamKey } from '../identity/authenticate.ts';
import type { Located } from '../request/locate.ts';
import { goesByMembers, keyWithoutSlot } from '../request/key-without-slot.ts';
import type { Rejected } from '../results/result.ts';
import { methodOf } from '../request/upgrade.ts';
import { callRules, type CallRules } from './call-rules.ts';
import {
  groupsWithMembers,
  membersFor,
  planMembers,
  type MemberRoute,
  type MemberPlan,
} from './member-plan.ts';

/** A call at one upstream that may serve it, with its key, groups and rules there. */
export interface Candidate {
  readonly kind: 'planned';
  readonly call: AuthenticatedCall;
  readonly located: Located;
  readonly key: UpstreamKey;
  readonly routed: RoutedCall;
  /** The pools in which it needs a slot, narrowest first. */
  readonly placements: readonly Placement[];
  readonly rules: CallRules;
  /** The upstream that the call requested, if this is another. null if it is this one. */
  readonly spilledFrom: Located | null;
  /** The members among which its group routes it. null if it goes to the upstream that it names. */
  readonly members: MemberPlan | null;
  /**
   * The member where it was granted, to which `located` and `key` then belong. null if there is none yet, or it has no
   * members.
   */
  readonly member: MemberRoute | null;
}

/** The key of a call whose member is not known yet. */
const NO_KEY: UpstreamKey = { injected: null, fingerprint: null };

export async function planAt(
  call: AuthenticatedCall,
  located: Located,
  spilledFrom: Located | null = null,
): Promise<Candidate | Rejected> {
  const { caller, table, env } = call;
  const { upstream, path, operation, model } = located;
  const isSpilled = spilledFrom !== null;
  const missing = missingKey(upstream, caller, table);
  if (missing !== null) return missing;
  const found = await (operation.limited || isSpilled
    ? keyFor(upstream, caller, table, env, isSpilled)
    : keyWithoutSlot(upstream, model, call));
  // A member may have a key although its upstream has none.
  const byMembers = operation.limited && goesByMembers(caller, upstream, isSpilled);
  const mayLackKey = table.routes.hasMembers && byMembers;
  if (found.kind === 'rejected' && !mayLackKey) return found;
  const calledKey = found.kind === 'key' ? found.key : NO_KEY;
  const account = operation.limited ? await accountOf(call, upstream, calledKey) : null;
  const at = { upstream, path, operation: operation.name, model };
  const method = methodOf(call, operation);
  const routed = { ...routedCall(call, at, calledKey), method, account };
  const placed = placementsOf(call, routed);
  const members = mayLackKey
    ? membersFor('call', placed, (group) => planMembers(call, located, group, spilledFrom))
    : null;
  if (members?.kind === 'rejected') return members;
  if (found.kind === 'rejected' && members === null) return found;
  const foreign = members === null ? foreignPage(call, upstream, calledKey.injected) : null;
  if (foreign !== null) return foreign;
  return candidateOf({ call, located, key: calledKey, routed, spilledFrom, members }, placed);
}

/** The candidate of a call that is placed in these pools. `key` applies if the call goes to no member. */
export async function candidateOf(
  planned: Pick<Candidate, 'call' | 'located' | 'key' | 'routed' | 'spilledFrom' | 'members'>,
  placed: readonly Placement[],
): Promise<Candidate> {
  const { call, routed, members } = planned;
  const { table, env } = call;
  const own = members === null ? withOwnPartitions(call, placed, routed) : placed;
  const placements = mayHash(table.routes, env)
    ? await hashedPlacements(own, env, table.snapshot.fingerprintKey)
    : own;
  const rules = callRules(placements, members?.group ?? null);
  const key = members === null ? planned.key : NO_KEY;
  const hidden = members === null ? hiddenKeyOf(call, routed.upstream, key) : null;
  const ofKey = hidden === null ? routed : { ...routed, hiddenKey: await hidden };
  return { kind: 'planned', ...planned, key, routed: ofKey, placements, rules, member: null };
}

/**
 * Moves a call with its caller's own key into the pools of that key or of its known account, in groups whose other
 * calls are routed to members.
 */
function withOwnPartitions(
  { table: { routes } }: Pick<AuthenticatedCall, 'table'>,
  placed: readonly Placement[],
  { keyFingerprint, account }: RoutedCall,
): readonly Placement[] {
  if (!routes.hasMembers) return placed;
  const split = new Set(groupsWithMembers(placed));
  if (split.size === 0) return placed;
  const owner = account?.kind === 'known' ? account.name : keyFingerprint;
  return placed.map((one) => {
    if (one.config === null || !split.has(one.config)) return one;
    return { ...one, partition: ownPartition(one.partition, owner) };
  });
}

export function atMember(candidate: Candidate, member: MemberRoute): Candidate {
  const { located, injected } = member;
  return { ...candidate, located, key: { injected, fingerprint: null }, member };
}

/** A call as groups see it, even if it will not be sent. */
/** The upstream that a call is sent to, or the member of a group. */
export function placeOf({
  located,
  members,
  member,
}: Pick<Candidate, 'located' | 'members' | 'member'>): string {
  return member === null ? located.upstream.id : `${members?.group ?? ''}#${member.id}`;
}

export function routedCall(
  { request, method, caller }: AuthenticatedCall,
  at: Pick<RoutedCall, 'upstream' | 'path' | 'operation' | 'model'>,
  key: UpstreamKey,
): RoutedCall {
  return {
    ...at,
    method,
    caller: caller.id,
    keyIds: caller.keyIds,
    keyFingerprint: key.fingerprint,
    isOwnKey: key.injected === null && key.fingerprint !== null,
    isAmbiguousKey: caller.credentials.isAmbiguous,
    account: null,
    header: (name) => request.headers.get(name),
  };
}

/**
 * Fingerprints the fields that may hold a caller's key in an unknown place. null if there are none. Refusals of such a
 * call hold only calls with the same values, because the upstream may see another account.
 */
export function hiddenKeyOf(
  { request, query, table }: AuthenticatedCall,
  { isKeyless }: Upstream,
  { injected, fingerprint: known }: UpstreamKey,
): Promise<string> | null {
  if (isKeyless || injected !== null || known !== null) return null;
  const hidden = hiddenKeyIn(request.headers, query);
  return hidden === null ? null : fingerprint(table.snapshot.fingerprintKey, hidden);
}

/** The pools of a call in its version of the configuration. Their partitions are named by plain values. */
export function placementsOf(
  { table }: AuthenticatedCall,
  routed: RoutedCall,
): readonly Placement[] {
  return table.routes.place(routed);
}

/** The pool of a call in the automatic group. null if it is in none. */
export function autoPlacementOf(call: AuthenticatedCall, routed: RoutedCall): Placement | null {
  return placementsOf(call, routed).find(({ config }) => config === null) ?? null;
}

/** The error reply to a call whose key may not use a candidate. null if it may. */
export function forbiddenAt(candidate: Candidate): ErrorReply | null {
  const { call, located, key, placements, members } = candidate;
  const { caller, table } = call;
  const { upstream, operation } = located;
  // Each member decides for itself.
  const entry =
    members === null ? entryAt(upstream, key.injected, caller.credentials.providerKey) : null;
  const shut = entry === null ? null : closedRoute(caller.key, located, call, entry);
  if (shut !== null || caller.key === null) return shut;
  return operation.limited
    ? forbiddenFor(caller.key, placements)
    : forbiddenUpstream(caller.key, upstream, table.routes);
}

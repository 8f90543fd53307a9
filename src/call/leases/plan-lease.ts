import { quoted } from '../../core/words/quoted.ts';
import type { GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { hashedPlacements, mayHash } from '../../routing/hashed-partition.ts';
import { forbiddenFor, forbiddenLease } from '../../routing/key-access.ts';
import { byTier, hasMembers, membersOf, type GroupMember } from '../../routing/members.ts';
import type { Placement, RoutedCall } from '../../routing/placement.ts';
import { LEASE } from '../../upstream/operation/operations-table.ts';
import type { AuthenticatedCall } from '../call.ts';
import { callRules, type CallRules } from '../call-rules.ts';
import { accountOf } from '../identity/accounts.ts';
import { keyFor, missingKey } from '../identity/authenticate.ts';
import { locatedOf } from './lease-call.ts';
import type { Located } from '../locate.ts';
import { isPriced } from '../../routing/metered.ts';
import { measureAsReported, type Metering } from '../metering.ts';
import { hiddenKeyOf, withOwnPartitions } from '../plan.ts';
import { rejected, type Rejected } from '../result.ts';
import { placementOf } from './held-pools.ts';
import type { LeaseToken, WantedLease } from './lease-token.ts';

/** A member as a lease sees it. The holder decides what it calls there. */
export interface LeaseMember {
  readonly id: string;
  readonly located: Located;
  readonly member: GroupMember;
}

export interface LeasePlan {
  readonly kind: 'planned';
  readonly call: AuthenticatedCall;
  readonly located: Located;
  readonly routed: RoutedCall;
  /** The pools in which it needs slots, narrowest first. */
  readonly placements: readonly Placement[];
  readonly rules: CallRules;
  /** null if none of its groups counts tokens or cost. */
  readonly metering: Metering | null;
  /** The group whose members it uses. null if there is none. */
  readonly members: {
    readonly group: string;
    readonly places: ReadonlyMap<string, LeaseMember>;
    readonly impossible: readonly string[];
  } | null;
}

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
): Promise<LeasePlan | Rejected> {
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
  const routed: RoutedCall = {
    upstream,
    path: null,
    method: call.request.method,
    operation: LEASE,
    model,
    caller: caller.id,
    keyIds: caller.keyIds,
    keyFingerprint: key.fingerprint,
    isOwnKey: key.injected === null && key.fingerprint !== null,
    isAmbiguousKey: caller.credentials.isAmbiguous,
    account: await accountOf(call, upstream, key),
    header: (name) => call.request.headers.get(name),
  };
  const placed =
    wanted.group === undefined
      ? table.routes.place(routed)
      : table.routes.placeIn(wanted.group, routed);
  if (placed === null) return rejected(unknownGroup(wanted.group ?? ''));
  const located = locatedAt(upstream, model);
  const isByMembers = caller.credentials.providerKey === null || upstream.isKeyless;
  const own = isByMembers ? placed : withOwnPartitions(call, placed, routed);
  const placements = mayHash(table.routes, env)
    ? await hashedPlacements(own, env, table.snapshot.fingerprintKey)
    : own;
  call.found.placements = placements;
  const forbidden = caller.key === null ? null : forbiddenFor(caller.key, placements, wanted.group);
  if (forbidden !== null) return rejected(forbidden);
  const members = isByMembers ? membersFor(call, located, placements) : null;
  if (members !== null && 'reply' in members) return members;
  const rules = callRules(placements, members?.group ?? null);
  const metering = rules.isMetered ? measureAsReported(located, estimateOf(wanted)) : null;
  const hidden = members === null ? hiddenKeyOf(call, upstream, key) : null;
  const ofKey = hidden === null ? routed : { ...routed, hiddenKey: await hidden };
  return { kind: 'planned', call, located, routed: ofKey, placements, rules, metering, members };
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
    said: null,
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

/** The current rules of a lease in the groups whose slots it holds. */
export function rulesOf(call: Pick<AuthenticatedCall, 'table'>, { pools }: LeaseToken): CallRules {
  const withMember = pools.find(({ member }) => member !== undefined)?.group ?? null;
  return callRules(
    pools.map((hold) => placementOf(call, hold)),
    withMember,
  );
}

/** The upstreams that a group names: those of its members, or the single one that it matches. */
function upstreamsNamed(config: GroupConfig): string[] {
  const ofMembers = byTier(membersOf(config)).map(({ config: { upstream } }) => upstream);
  const [only, ...others] = config.match.upstreams;
  const isOne = only !== undefined && others.length === 0 && !only.includes('*');
  return isOne ? [...ofMembers, only] : ofMembers;
}

function membersFor(
  { table }: AuthenticatedCall,
  located: Located,
  placements: readonly Placement[],
): LeasePlan['members'] | Rejected {
  const [config, ...others] = placements.flatMap(({ config: each }) =>
    each !== null && hasMembers(each) ? [each] : [],
  );
  if (config === undefined) return null;
  if (others.length > 0) {
    const names = [config, ...others].map(({ name }) => `\`${name}\``).join(', ');
    const message = `This lease matches several groups with members (${names}), but it can use the members of only one. Ask the operator to narrow the \`match\` of these groups.`;
    return rejected({ reason: 'too_many_groups', message });
  }
  const names = table.routes.namesOf(located.upstream, located.model);
  const places = new Map<string, LeaseMember>();
  const impossible: string[] = [];
  for (const member of membersOf(config)) {
    const there = table.upstreams.get(member.config.upstream);
    const model = names.map((name) => member.models.get(name)).find((name) => name !== undefined);
    const at = there === undefined ? null : locatedAt(there, model ?? located.model);
    if (at === null || !isPriced(at, config, member.config)) impossible.push(member.id);
    else places.set(member.id, { id: member.id, located: at, member });
  }
  return { group: config.name, places, impossible };
}

function unknownUpstream(id: string): Rejected['reply'] {
  const message = `There is no upstream ${quoted(id)}. Set \`upstream\` to the id of a configured upstream.`;
  return { reason: 'upstream_unknown', message };
}

function unknownGroup(name: string): Rejected['reply'] {
  const message = `There is no group ${quoted(name)} for this key. Set \`group\` to a configured group. Automatic groups are selected by \`upstream\` and \`model\`.`;
  return { reason: 'group_unknown', message };
}

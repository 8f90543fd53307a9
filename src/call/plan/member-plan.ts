import type { GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { closedRoute } from '../../routing/key-access.ts';
import {
  hasMembers,
  membersOf,
  secretOf,
  siblingPath,
  type GroupMember,
} from '../../routing/members.ts';
import type { Placement } from '../../routing/placement.ts';
import { readSecret, secretFault } from '../../runtime/secrets.ts';
import { isPriced } from '../../routing/group-limits.ts';
import { packingsOf } from '../../upstream/body/packing.ts';
import { foreignPage, type AuthenticatedCall } from '../request/call.ts';
import type { Located } from '../request/locate.ts';
import { missingKey } from '../identity/authenticate.ts';
import { operationOf } from '../request/operation-of.ts';
import { rejected, type Rejected } from '../results/result.ts';

export interface MemberRoute {
  readonly kind: 'place';
  readonly id: string;
  readonly member: GroupMember;
  readonly located: Located;
  readonly calledAt: Upstream;
  /** The operator's key for it. null if its upstream needs none. */
  readonly injected: string | null;
  /** Name of the model that the body must have there. null if the body stays unchanged. */
  readonly bodyModel: string | null;
}

export interface MemberPlan {
  readonly kind: 'members';
  readonly group: string;
  readonly places: ReadonlyMap<string, MemberRoute>;
  /** Ids of the members that can never serve the call. */
  readonly impossible: readonly string[];
}

/** A member that cannot serve a call, and the error for its caller if no other can. */
interface Impossible {
  readonly kind: 'impossible';
  readonly id: string;
  readonly reply: ErrorReply;
}

export function groupsWithMembers(placed: readonly Placement[]): GroupConfig[] {
  return placed.flatMap(({ config }) => (config !== null && hasMembers(config) ? [config] : []));
}

/**
 * Plans the members of a call or a lease by the only one of its groups with members. null if it is in none.
 */
export function membersFor(
  what: 'call' | 'lease',
  placed: readonly Placement[],
  planIn: (group: GroupConfig) => MemberPlan | Rejected,
): MemberPlan | Rejected | null {
  const [first, ...others] = groupsWithMembers(placed);
  if (first === undefined) return null;
  if (others.length === 0) return planIn(first);
  const names = [first, ...others].map(({ name }) => `\`${name}\``).join(', ');
  const message = `This ${what} matches several groups with members (${names}), but it can run at the members of only one. Ask the operator to narrow the \`match\` of these groups.`;
  return rejected({ reason: 'too_many_groups', message });
}

/**
 * Plans at which members a call may run, as far as that is known before a grant. Rejects the call if there are none.
 */
export function planMembers(
  call: AuthenticatedCall,
  located: Located,
  config: GroupConfig,
  spilledFrom: Located | null,
): MemberPlan | Rejected {
  const names = call.table.routes.namesOf(located.upstream, located.model);
  const isRenamed = spilledFrom !== null && spilledFrom.model !== located.model;
  const request = { call, located, names, isRenamed };
  const all = membersOf(config).map((member) => placeOf(member, config, request));
  const places = new Map(all.flatMap((one) => (one.kind === 'place' ? [[one.id, one]] : [])));
  const impossible = all.filter((one) => one.kind === 'impossible');
  const [first, ...others] = impossible;
  if (places.size === 0 && first !== undefined) {
    // A missing secret comes first, because the operator has to act.
    const { reply } = others.find((one) => one.reply.reason === 'secret_missing') ?? first;
    return rejected(reply);
  }
  const { name: group } = config;
  return { kind: 'members', group, places, impossible: impossible.map(({ id }) => id) };
}

interface MemberRequest {
  readonly call: AuthenticatedCall;
  readonly located: Located;
  /** Names of its model. */
  readonly names: readonly string[];
  /** Whether its body names another model than its caller wrote, because the call has spilled. */
  readonly isRenamed: boolean;
}

function placeOf(
  member: GroupMember,
  group: GroupConfig,
  { call, located: asCalled, names, isRenamed }: MemberRequest,
): MemberRoute | Impossible {
  const { id, config } = member;
  const cannot = (reason: ErrorReply['reason'], message: string): Impossible => ({
    kind: 'impossible',
    id,
    reply: { reason, message },
  });
  const upstream = call.table.upstreams.get(config.upstream);
  if (upstream === undefined) {
    return cannot(
      'upstream_unknown',
      `Upstream \`${config.upstream}\` was removed from the configuration. Use another upstream.`,
    );
  }
  const named = names.map((name) => member.models.get(name)).find((there) => there !== undefined);
  const model = named === undefined || named === asCalled.model ? null : named;
  const located = locatedAt(upstream, model, call, asCalled);
  if (located === null) {
    const message = `Member \`${id}\` of group \`${group.name}\` uses upstream \`${upstream.id}\`, which has no such route. Call a route that the upstream has.`;
    return cannot('upstream_unknown', message);
  }
  const { from } = located.operation.model;
  if (from === 'path' && model !== null && !isNamedInPath(model, located, asCalled)) {
    const message = `Member \`${id}\` of group \`${group.name}\` calls this model \`${model}\`, which cannot be written into the path of this call. Ask the operator to change the name.`;
    return cannot('model_unknown', message);
  }
  const bodyModel = from === 'path' ? null : (model ?? (isRenamed ? asCalled.model : null));
  if (bodyModel !== null && !mayBeRenamed(call)) {
    const message = `Member \`${id}\` of group \`${group.name}\` calls this model \`${bodyModel}\`, but the model in the body cannot be renamed: the body is too long, of unknown length, or in a content-encoding that Headgate cannot read. Send a smaller body, uncompressed, with its length.`;
    return cannot('body_unreadable', message);
  }
  if (!isPriced(located, group, config)) {
    const message = `The price of model \`${located.model ?? ''}\` at upstream \`${upstream.id}\` is unknown, and group \`${group.name}\` or its member \`${id}\` has a budget. Set \`prices\` for the upstream, or \`limits.budget_usd.fallback_price\`.`;
    return cannot('price_unknown', message);
  }
  const secret = secretOf(member, upstream);
  const missing = missingKey(upstream, call.caller, call.table);
  if (missing !== null) return cannot('key_missing', missing.reply.message);
  if (secret !== null && call.caller.gatewayKeyId === null) {
    const message = `Member \`${id}\` of group \`${group.name}\` uses the operator's key, so it requires a gateway key. Send it in the \`headgate-key\` header.`;
    return cannot('key_missing', message);
  }
  const injected = secret === null ? null : readSecret(call.env, secret);
  if (secret !== null && injected === null) {
    const message = `The operator's key for member \`${id}\` of group \`${group.name}\` is not available: the secret \`${secret}\` ${secretFault(call.env, secret)}. Ask the operator to set it.`;
    return cannot('secret_missing', message);
  }
  const foreign = foreignPage(call, upstream, injected);
  if (foreign !== null) return { kind: 'impossible', id, reply: foreign.reply };
  const { key } = call.caller;
  // Members never receive a caller's key.
  const entry = injected === null ? 'network' : 'operator_key';
  const shut = closedRoute(key, located, call, entry);
  if (shut !== null) return { kind: 'impossible', id, reply: shut };
  const calledAt = asCalled.upstream;
  return { kind: 'place', id, member, located, calledAt, injected, bodyModel };
}

/** The route of a call at an upstream, with another model if one is given. null if there is none. */
function locatedAt(
  upstream: Upstream,
  model: string | null,
  call: AuthenticatedCall,
  asCalled: Located,
): Located | null {
  if (upstream === asCalled.upstream && model === null) return asCalled;
  const path = siblingPath(asCalled.upstream, upstream, asCalled.path, model);
  if (path === null) return null;
  const operation = operationOf(call, upstream, path, asCalled.operation);
  if (operation.socket === 'unserved') return null;
  return { ...asCalled, upstream, path, operation, model: model ?? asCalled.model };
}

/**
 * Returns whether a path names the intended model. In some paths it cannot be changed, so the call would count as one
 * model and be served by another.
 */
function isNamedInPath(
  name: string,
  { upstream, path, operation }: Located,
  asCalled: Located,
): boolean {
  if (operation.model.from === 'path' && operation.model.value === name) return true;
  return path !== siblingPath(asCalled.upstream, upstream, asCalled.path, null);
}

/**
 * Picks the member of a call whose group granted none, because it cannot be reached and allows bypasses, or does not
 * know its members yet.
 */
export function pickMember(
  { places }: MemberPlan,
  isExcluded: (id: string) => boolean,
): MemberRoute | null {
  const open = [...places.values()].filter(
    ({ id, member }) => member.config.enabled && !isExcluded(id),
  );
  const tier = Math.min(...open.map(({ member }) => member.config.tier));
  const lowest = open.filter(({ member }) => member.config.tier === tier);
  const all = lowest.reduce((sum, { member }) => sum + member.config.weight, 0);
  let left = Math.random() * all;
  for (const place of lowest) {
    left -= place.member.config.weight;
    if (left < 0) return place;
  }
  return lowest.at(-1) ?? null;
}

/** Maximum size of a body that is kept to be sent under another model name. */
export const RENAMED_BYTES_MAX = 4_194_304;

/** Returns whether the body of a call could be renamed, as far as its headers show. */
export function mayBeRenamed({
  body,
  request,
}: Pick<AuthenticatedCall, 'body' | 'request'>): boolean {
  const { contentLength } = body;
  return (
    packingsOf(body.encodingIn(request.headers)) !== null &&
    contentLength !== null &&
    contentLength <= RENAMED_BYTES_MAX
  );
}

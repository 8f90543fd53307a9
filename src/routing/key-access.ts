import type { Config, GatewayKeyConfig } from '../contract/config/config.ts';
import { kindOfLimits } from './implied-groups.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { ErrorReply } from '../contract/reasons.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { compileGlobs } from './glob.ts';
import type { Placement, Routes } from './placement.ts';
import { mayGoUp, methodOverride } from '../upstream/operation/readings.ts';
import {
  ADMINISTRATION_NAME,
  neededRoutes,
  UNKNOWN_NAME,
  type Operation,
} from '../upstream/operation/operation.ts';
import { isSessionRoute } from '../upstream/operation/upgrades.ts';
import { LEASE, LISTED_OPERATIONS } from '../upstream/operation/operations-table.ts';

// Rules for what keys of clients may use, and for how long.

/** Maps keys by their digests: the current one, and the one before a rotation. */
export function keysByHash(
  keys: readonly GatewayKeyConfig[],
): ReadonlyMap<string, GatewayKeyConfig> {
  const before = keys.flatMap((key) =>
    key.previous === null ? [] : ([[key.previous.hash, key]] as const),
  );
  return new Map([...before, ...keys.map((key) => [key.hash, key] as const)]);
}

export function requiresKey(
  { require_key: all, keys }: Pick<Config, 'keys' | 'require_key'>,
  { requiresKey: own }: Pick<Upstream, 'requiresKey'>,
): boolean {
  const rule = own === 'auto' ? all : own;
  return rule === 'auto' ? keys.length > 0 : rule;
}

/** Whether calls to all upstreams, to some or to none need a gateway key. */
export function callsThatNeedKey(
  config: Pick<Config, 'keys' | 'require_key'>,
  upstreams: Iterable<Upstream>,
): 'all' | 'some' | 'none' {
  // The rule of the whole configuration applies to calls of unknown upstreams.
  const rules = [{ requiresKey: 'auto' } as const, ...upstreams];
  const needs = new Set(rules.map((upstream) => requiresKey(config, upstream)));
  if (needs.size > 1) return 'some';
  return needs.has(true) ? 'all' : 'none';
}

/** Returns why a key is not valid now. null if it is. `hash` is the digest by which it was found, if any. */
export function refusedKey(key: GatewayKeyConfig, hash: string | null): ErrorReply | null {
  const reply = closedKey(key, hash);
  return reply === null ? null : { ...reply, about: { key } };
}

function closedKey(key: GatewayKeyConfig, hash: string | null): ErrorReply | null {
  const { revoked_at: revokedAt, expires_at: expiresAt, previous } = key;
  if (revokedAt !== null) {
    return invalid(`The gateway key was revoked on ${revokedAt}. Send a valid key.`);
  }
  const isOld = hash !== null && hash !== key.hash;
  if (isOld && isOver(previous?.expires_at ?? '')) {
    return invalid(
      'The gateway key was rotated, and its grace period has ended. Send the new key.',
    );
  }
  return expiresAt !== null && isOver(expiresAt)
    ? invalid(`The gateway key expired on ${expiresAt}. Send a valid key.`)
    : null;
}

/**
 * Rejects a call that would acquire slots that its key may not use. `groups` of a key applies only to groups of a
 * provider: groups that only add a limit are open to every key, and so are the limits of the key itself. A group that
 * the call requests by name (`named`) is always checked.
 */
export function forbiddenFor(
  key: Pick<GatewayKeyConfig, 'id' | 'groups'>,
  placements: readonly Placement[],
  named: string | null = null,
): ErrorReply | null {
  const barred = placements.find(
    ({ group, isOfProvider }) => !mayUse(key, group, isOfProvider || group === named),
  );
  if (barred === undefined) return null;
  const { group } = barred;
  const help = 'An operator can add it to `groups` of the key.';
  return { ...forbidden(key.id, `group \`${group}\``, help), about: { group } };
}

/** Whether a key, or a client without one (null), may acquire slots of a group. */
export function mayUse(
  key: Pick<GatewayKeyConfig, 'groups'> | null,
  group: string,
  isOfProvider: boolean,
): boolean {
  return key === null || key.groups.length === 0 || !isOfProvider || compiled(key)(group);
}

/** Rejects a call without a slot unless its key may use some group of the upstream. */
export function forbiddenUpstream(
  key: Pick<GatewayKeyConfig, 'id' | 'groups'>,
  upstream: Upstream,
  routes: Routes,
): ErrorReply | null {
  if (key.groups.length === 0) return null;
  const names = [`${AUTO_PREFIX}${upstream.id}`, ...routes.groupsOf(upstream)];
  const help = 'An operator can add one of its groups to `groups` of the key.';
  return names.some(compiled(key)) ? null : forbidden(key.id, `upstream \`${upstream.id}\``, help);
}

/** Whether a client may use an upstream without a slot. `key` is null without a gateway key. */
export function isUpstreamAllowed(
  key: Pick<GatewayKeyConfig, 'id' | 'groups'> | null,
  upstream: Upstream,
  routes: Routes,
): boolean {
  return key === null || forbiddenUpstream(key, upstream, routes) === null;
}

/** The right of a key to be charged the usage that its leases report instead of their reservation. */
export const LEASE_USAGE = 'lease_usage';

/** Names that `allow` of a key may have in addition to operations. */
export const LEASE_RIGHTS: readonly string[] = [LEASE, LEASE_USAGE];

/** Returns the error for a client that may not take leases. null if it may. */
export function forbiddenLease(
  key: Pick<GatewayKeyConfig, 'id' | 'allow'> | null,
  { leases }: Pick<Config, 'leases'>,
): ErrorReply | null {
  if (leases === 'open' || (key !== null && allowsLeases(key))) return null;
  if (key !== null) {
    const message = `Gateway key \`${key.id}\` may not take leases. Add \`lease\` to its \`allow\` (\`allow: [lease]\`). On a trusted network, \`leases: open\` in the configuration allows leases for every client.`;
    return { reason: 'key_forbidden', message };
  }
  const message =
    'Leases require a gateway key, and this request has none. Send a key with `allow: [lease]` in the `headgate-key` header. On a trusted network, `leases: open` in the configuration allows leases without a key.';
  return { reason: 'key_forbidden', message };
}

export function allowsLeases({ allow }: Pick<GatewayKeyConfig, 'allow'>): boolean {
  return matcherOf(allow)(LEASE);
}

/** Whether the usage that a client reports for its leases counts. Otherwise the reservation counts. */
export function mayReportUsage(key: Pick<GatewayKeyConfig, 'allow'> | null): boolean {
  return key !== null && matcherOf(key.allow)(LEASE_USAGE);
}

interface AccessRequest {
  readonly upstream: Upstream;
  readonly path: string;
  readonly operation: Pick<Operation, 'isNamed' | 'socket'>;
}

interface RouteMaker {
  readonly request: Pick<Request, 'method' | 'headers'>;
  readonly query: URLSearchParams;
}

/** Access to an upstream without the client's own key: the operator's key, or a network that the upstream trusts. */
export type UpstreamAccess = 'operator_key' | 'network';

/** Returns the access that a call uses. null if the upstream receives the client's own key, or is public. */
export function entryAt(
  { isKeyless, via }: Pick<Upstream, 'isKeyless' | 'via'>,
  injected: string | null,
  providerKey: string | null,
): UpstreamAccess | null {
  if (injected !== null) return 'operator_key';
  return isKeyless || (via !== null && providerKey === null) ? 'network' : null;
}

/**
 * Rejects a call that may not use the operator's access to an upstream. Routes without a slot reach the whole account
 * or server, including answers, files and models of other clients. They are closed unless the operator lists them. A
 * group that names a path does not open it. An unknown route can be listed only if a group names it.
 */
export function closedRoute(
  key: Pick<GatewayKeyConfig, 'id' | 'allow'> | null,
  { upstream, path, operation }: AccessRequest,
  { request, query }: RouteMaker,
  entry: UpstreamAccess,
): ErrorReply | null {
  const { method, headers } = request;
  const close = (what: string, help = ''): ErrorReply => closed(upstream, what, entry, help);
  const override = methodOverride(headers, query);
  if (override !== null) {
    return close(`a request that overrides its method with ${override.name}`);
  }
  const isListed = [key?.allow, upstream.allow].map(matcherOf);
  const isNamed = operation.isNamed === true;
  const mayBeListed = (name: string): boolean =>
    LISTED.has(name) || (name === UNKNOWN_NAME && isNamed);
  const shut = neededFor(method, { upstream, path, operation }).filter(
    (name) => !(mayBeListed(name) && isListed.some((matches) => matches(name))),
  );
  const [first] = shut.toSorted((a, b) => Number(LISTED.has(a)) - Number(LISTED.has(b)));
  switch (first) {
    case undefined:
      return leavesBase(upstream, path)
        ? close(
            'a path that some servers resolve outside of its base URL, because its dots lead to a parent folder',
            ' Send the path without them.',
          )
        : null;
    case ADMINISTRATION_NAME:
      return close('a route that administers the account');
    case UNKNOWN_NAME: {
      if (isNamed) {
        return unlisted(first, 'This route is unknown to Headgate', { key, upstream, entry });
      }
      const route = `${method} ${path.slice(0, 100)}`;
      const how = operation.socket === undefined ? '' : ' with `methods: [GET]`';
      return close(`a route that is unknown to Headgate (${route})`, howToOpen(how));
    }
    case 'realtime':
      return close(
        'a request that sets up a realtime session outside of all limits (connect by WebSocket instead)',
      );
    default:
      return unlisted(first, `Operation \`${first}\` takes no slot`, { key, upstream, entry });
  }
}

/** Whether some server may resolve a path outside of the path of the base URL. */
function leavesBase({ baseUrl }: Upstream, path: string): boolean {
  return mayGoUp(path) && new URL(baseUrl).pathname !== '/';
}

/**
 * A session and each turn have a slot, so they need no listed route. If every WebSocket is a session, a session on any
 * other route reaches what a request to that route reaches, such as the shell of a notebook or events of other clients.
 */
function neededFor(
  method: string,
  { upstream, path, operation }: AccessRequest,
): readonly string[] {
  const { dialect } = upstream;
  const { socket } = operation;
  if (socket === undefined || socket === 'unserved') return neededRoutes(method, path, dialect);
  const needed = neededRoutes('POST', path, dialect);
  const isOwnRoute = socket === 'turns' || isSessionRoute(path);
  return isOwnRoute ? needed.filter((name) => name === ADMINISTRATION_NAME) : needed;
}

const LISTED: ReadonlySet<string> = new Set(LISTED_OPERATIONS);

const BRING_A_KEY = 'Use your own provider key';

/** Operators open an unknown route by naming its path. */
function howToOpen(how: string): string {
  return ` To open it, an operator must name its path in \`match.paths\` of a group${how} and list it: \`allow: [${UNKNOWN_NAME}]\`.`;
}

function closed(
  { id, isKeyless }: Upstream,
  what: string,
  entry: UpstreamAccess,
  toOpen: string,
): ErrorReply {
  // At an upstream without keys, a key of the client does not help.
  const help = `${isKeyless ? '' : ` ${BRING_A_KEY}.`}${toOpen}`;
  const message =
    entry === 'operator_key'
      ? `The operator's key of upstream \`${id}\` is never used for ${what}.${help}`
      : `Upstream \`${id}\` accepts every call without a key, so Headgate never sends it ${what}.${help}`;
  return { reason: 'key_forbidden', message };
}

interface ClosedAt {
  readonly key: { readonly id: string } | null;
  readonly upstream: Upstream;
  readonly entry: UpstreamAccess;
}

function unlisted(name: string, why: string, { key, upstream, entry }: ClosedAt): ErrorReply {
  const { id, isKeyless } = upstream;
  const closes =
    entry === 'operator_key'
      ? `so the operator's key of upstream \`${id}\` is not used for it`
      : `and upstream \`${id}\` accepts every call without a key, so the route is closed`;
  const where =
    key === null ? `upstream \`${id}\`` : `gateway key \`${key.id}\` or of the upstream`;
  const help = isKeyless ? '' : ` ${BRING_A_KEY}, or ask an operator to list it.`;
  const message = `${why}, ${closes} unless it is listed: \`allow: [${name}]\` of ${where}.${help}`;
  return { reason: 'key_forbidden', message };
}

/** Keys never change within one version of the configuration, so the globs of each are compiled once. */
const matchers = new WeakMap<readonly string[], (name: string) => boolean>();

function compiled({ groups }: Pick<GatewayKeyConfig, 'groups'>): (name: string) => boolean {
  const matches = matcherOf(groups);
  return (name) => kindOfLimits(name) !== null || matches(name);
}

/** Compiles globs once. A client without a gateway key has none. */
function matcherOf(globs: readonly string[] = []): (name: string) => boolean {
  let matches = matchers.get(globs);
  if (matches === undefined) {
    matches = compileGlobs(globs);
    matchers.set(globs, matches);
  }
  return matches;
}

/** Whether an instant has passed. An invalid date counts as passed, so that it opens nothing. */
function isOver(at: string): boolean {
  return !(Date.parse(at) > Date.now());
}

function invalid(message: string): ErrorReply {
  return { reason: 'key_invalid', message };
}

function forbidden(id: string, what: string, help: string): ErrorReply {
  return { reason: 'key_forbidden', message: `Gateway key \`${id}\` may not use ${what}. ${help}` };
}

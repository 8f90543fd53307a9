import type { Config, GatewayKeyConfig } from '../contract/config/config.ts';
import { kindOfLimits } from './key-groups.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { ErrorReply } from '../contract/reasons.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { compileGlobs } from './glob.ts';
import type { Placement, Routes } from './placement.ts';
import { mayGoUp } from '../upstream/operation/path-readings.ts';
import {
  ADMINISTRATION_NAME,
  neededRoutes,
  UNKNOWN_NAME,
  type Operation,
} from '../upstream/operation/operation.ts';
import { isSessionRoute } from '../upstream/operation/upgrades.ts';
import { methodOverride } from '../upstream/operation/method-override.ts';
import { LEASE, LISTED_OPERATIONS } from '../upstream/operation/operations-table.ts';

/** Rules of what keys of callers open, and for how long. */

/** Maps keys by the digests that they are found by: their own, and the one before a rotation. */
export function keysByHash(
  keys: readonly GatewayKeyConfig[],
): ReadonlyMap<string, GatewayKeyConfig> {
  const before = keys.flatMap((key) =>
    key.previous === null ? [] : ([[key.previous.hash, key]] as const),
  );
  return new Map([...before, ...keys.map((key) => [key.hash, key] as const)]);
}

/** Whether calls to an upstream need a gateway key. */
export function requiresKey(
  { require_key: all = 'auto', keys }: Pick<Config, 'keys'> & Partial<Pick<Config, 'require_key'>>,
  { requiresKey: own }: Pick<Upstream, 'requiresKey'>,
): boolean {
  const rule = own === 'auto' ? all : own;
  return rule === 'auto' ? keys.length > 0 : rule;
}

/** Which calls need a gateway key: those to all upstreams, to some, or to none. */
export function callsThatNeedKey(
  config: Pick<Config, 'keys'> & Partial<Pick<Config, 'require_key'>>,
  upstreams: Iterable<Upstream>,
): 'all' | 'some' | 'none' {
  // Calls whose upstream is not known go by the rule of the whole configuration.
  const rules = [{ requiresKey: 'auto' } as const, ...upstreams];
  const needs = new Set(rules.map((upstream) => requiresKey(config, upstream)));
  if (needs.size > 1) return 'some';
  return needs.has(true) ? 'all' : 'none';
}

/** Tells why a key opens nothing at this moment; null: it does. `hash` is what it was found by, if it was. */
export function refusedKey(key: GatewayKeyConfig, hash: string | null): ErrorReply | null {
  const reply = closedKey(key, hash);
  return reply === null ? null : { ...reply, about: { key } };
}

function closedKey(key: GatewayKeyConfig, hash: string | null): ErrorReply | null {
  const { revoked_at: revokedAt, expires_at: expiresAt, previous } = key;
  if (revokedAt !== null) return invalid(`The gateway key was revoked on ${revokedAt}.`);
  const isOld = hash !== null && hash !== key.hash;
  if (isOld && isOver(previous?.expires_at ?? '')) {
    return invalid('The gateway key was replaced by a new one, and the time to change is over.');
  }
  return expiresAt !== null && isOver(expiresAt)
    ? invalid(`The gateway key expired on ${expiresAt}.`)
    : null;
}

/**
 * Rejects a call that would take slots where its key may not. Groups that only come on top of those
 * that stand for something of a provider are everybody's, and so is the key's own. `named`: the group that was asked for by
 * its name; nothing else is asked for then, so it does not come on top of anything.
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
  return { ...forbidden(key.id, `the group ${group}`), about: { group } };
}

/** Tells whether a key, or a caller without one (null), may take slots of a group. */
export function mayUse(
  key: Pick<GatewayKeyConfig, 'groups'> | null,
  group: string,
  isOfProvider: boolean,
): boolean {
  return key === null || key.groups.length === 0 || !isOfProvider || compiled(key)(group);
}

/** Rejects likewise a call that takes no slot: its key must be good for some group of the upstream. */
export function forbiddenUpstream(
  key: Pick<GatewayKeyConfig, 'id' | 'groups'>,
  upstream: Upstream,
  routes: Routes,
): ErrorReply | null {
  if (key.groups.length === 0) return null;
  const names = [`${AUTO_PREFIX}${upstream.id}`, ...routes.groupsOf(upstream)];
  return names.some(compiled(key)) ? null : forbidden(key.id, `the upstream ${upstream.id}`);
}

/** Whether a caller may use an upstream without a slot. `key`: its gateway key; null: it has none. */
export function isUpstreamAllowed(
  key: Pick<GatewayKeyConfig, 'id' | 'groups'> | null,
  upstream: Upstream,
  routes: Routes,
): boolean {
  return key === null || forbiddenUpstream(key, upstream, routes) === null;
}

/** The right of a key to be charged the usage that its leases report, not their reservation. */
export const LEASE_USAGE = 'lease_usage';

/** Names that `allow` of a key may have in addition to operations. */
export const LEASE_RIGHTS: readonly string[] = [LEASE, LEASE_USAGE];

/** The error reply to a caller that may not take leases; null: it may. */
export function forbiddenLease(
  key: Pick<GatewayKeyConfig, 'id' | 'allow'> | null,
  { leases }: Pick<Config, 'leases'>,
): ErrorReply | null {
  if (leases === 'open' || (key !== null && allowsLeases(key))) return null;
  if (key !== null) {
    const message = `The gateway key ${key.id} may not take leases. Add lease to its allow (allow: [lease]); on a trusted network, leases: open in the configuration allows them for every caller.`;
    return { reason: 'key_forbidden', message };
  }
  const message =
    'Leases require a gateway key, and this request has none. Send one with allow: [lease] in the headgate-key header; on a trusted network, leases: open in the configuration allows them without a key.';
  return { reason: 'key_forbidden', message };
}

/** Whether a key has the right to take leases. */
export function allowsLeases({ allow }: Pick<GatewayKeyConfig, 'allow'>): boolean {
  return matcherOf(allow)(LEASE);
}

/** Whether the usage that a caller reports for its leases counts. Without a key or the right, the reservation counts. */
export function mayReportUsage(key: Pick<GatewayKeyConfig, 'allow'> | null): boolean {
  return key !== null && matcherOf(key.allow)(LEASE_USAGE);
}

/** A call at an upstream, as far as it says what is asked for. */
interface AccessRequest {
  readonly upstream: Upstream;
  readonly path: string;
  readonly operation: Pick<Operation, 'isNamed' | 'socket'>;
}

/** The request of a call. */
interface RouteMaker {
  readonly request: Pick<Request, 'method' | 'headers'>;
  readonly query: URLSearchParams;
}

/** Access to an upstream without a caller's own key: the operator's key, or a network that the upstream trusts. */
export type UpstreamAccess = 'operator_key' | 'network';

/** Finds the access that a call uses. Null: the upstream sees the caller's own key, or is public. */
export function entryAt(
  { isKeyless, via }: Pick<Upstream, 'isKeyless' | 'via'>,
  injected: string | null,
  providerKey: string | null,
): UpstreamAccess | null {
  if (injected !== null) return 'operator_key';
  return isKeyless || (via !== null && providerKey === null) ? 'network' : null;
}

/**
 * Rejects a call that may not use the operator's access to an upstream. Routes without a slot reach the whole account or
 * server, with other callers' answers, files and models, so they are closed unless the operator lists them. A group
 * that names a path does not open it. An unknown route can be listed only if a group names it.
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
  if (override !== null) return close(`a call that names another method by ${override.name}`);
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
            'a path that some servers read as outside of its base URL, because its dots lead to a parent folder',
            ' Write the path without them.',
          )
        : null;
    case ADMINISTRATION_NAME:
      return close('a route that administers the account');
    case UNKNOWN_NAME: {
      if (isNamed) {
        return unlisted(first, 'This route is unknown to Headgate', { key, upstream, entry });
      }
      const route = `${method} ${path.slice(0, 100)}`;
      const how = operation.socket === undefined ? '' : ' with methods: [GET]';
      return close(`a route that Headgate does not know (${route})`, nameIt(how));
    }
    case 'realtime':
      return close(
        'what sets up a realtime session, which then runs past every limit (connect by WebSocket)',
      );
    default:
      return unlisted(first, `The operation ${first} takes no slot`, { key, upstream, entry });
  }
}

/** Whether some server may read a path as one that does not begin with the path of the base URL. */
function leavesBase({ baseUrl }: Upstream, path: string): boolean {
  return mayGoUp(path) && new URL(baseUrl).pathname !== '/';
}

/**
 * A session and each turn have a slot, so neither is a route without one. Where every WebSocket is a session, a session on any
 * other route reaches what a request to that route reaches: the shell of a notebook, the events of other callers.
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

/** Callers may use their own key, except where the upstream needs none. */
const BRING_A_KEY = 'Use your own provider key';

/** Operators open an unknown route by naming its path. */
function nameIt(how: string): string {
  return ` To open it, an operator must name its path in match.paths of a group${how} and list it: allow: [${UNKNOWN_NAME}].`;
}

function closed(
  { id, isKeyless }: Upstream,
  what: string,
  entry: UpstreamAccess,
  toOpen: string,
): ErrorReply {
  const help = `${isKeyless ? '' : ` ${BRING_A_KEY}.`}${toOpen}`;
  const message =
    entry === 'operator_key'
      ? `The operator's key of the upstream ${id} is never used for ${what}.${help}`
      : `The upstream ${id} accepts every call without a key, so Headgate never sends it ${what}.${help}`;
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
      ? `so the operator's key of the upstream ${id} is not used for it`
      : `and the upstream ${id} accepts every call without a key, so the route is closed`;
  const where =
    key === null ? `the upstream ${id}` : `the gateway key ${key.id} or of the upstream`;
  const help = isKeyless ? '' : ` ${BRING_A_KEY} to open it.`;
  const message = `${why}, ${closes} unless it is listed: allow: [${name}] of ${where}.${help}`;
  return { reason: 'key_forbidden', message };
}

/** Keys never change within one version of the configuration, so each one's globs are compiled once. */
const matchers = new WeakMap<readonly string[], (name: string) => boolean>();

function compiled({ groups }: Pick<GatewayKeyConfig, 'groups'>): (name: string) => boolean {
  const matches = matcherOf(groups);
  return (name) => kindOfLimits(name) !== null || matches(name);
}

/** Compiles globs once. A configuration of the version before says nothing of what it allows. */
function matcherOf(globs: readonly string[] = []): (name: string) => boolean {
  let matches = matchers.get(globs);
  if (matches === undefined) {
    matches = compileGlobs(globs);
    matchers.set(globs, matches);
  }
  return matches;
}

/** Tells whether an instant is over. A text that is none is: nothing may stay open for want of a date. */
function isOver(at: string): boolean {
  return !(Date.parse(at) > Date.now());
}

function invalid(message: string): ErrorReply {
  return { reason: 'key_invalid', message };
}

function forbidden(id: string, what: string): ErrorReply {
  return { reason: 'key_forbidden', message: `The gateway key ${id} may not use ${what}.` };
}

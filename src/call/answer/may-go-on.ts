import { isolateConfig } from '../../config/isolate-config.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { CutReason } from '../../core/words/outcome.ts';
import { kindOfLimits } from '../../routing/implied-groups.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { forbiddenFor, closedRoute, entryAt, forbiddenUpstream } from '../../routing/key-access.ts';
import {
  jsonTextOf,
  beginsObject,
  mayNameModel,
  readFrameModels,
  type Frame,
  type FrameModels,
} from '../../upstream/socket/messages.ts';
import { isNamedInMessage, classifyTurn } from '../../upstream/operation/upgrades.ts';
import type { GroupConfig } from '../../contract/config/config.ts';
import { hasMembers, membersOf, siblingPath } from '../../routing/members.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import { identify, keyFor, type UpstreamKey } from '../identity/authenticate.ts';
import type { Located } from '../request/locate.ts';
import { operationOf } from '../request/operation-of.ts';
import { forbiddenAt, planAt, placementsOf, type Candidate } from '../plan/plan.ts';
import { rejected, type Rejected } from '../results/result.ts';
import { modelRule } from '../request/find-model.ts';
import { goesByMembers } from '../request/key-without-slot.ts';
import { unserved } from '../request/upgrade.ts';

/**
 * Checks open WebSockets against the configuration in force: the gateway key, its rights, the groups and the upstream.
 * A call in progress ends within minutes, but a session may last for hours, and a connection for turns for days.
 */

/** Returns why a WebSocket must end. null if it may stay open. */
type Look = () => Promise<CutReason | null>;

export function sessionLook(candidate: Candidate): Look {
  return lookOnce(candidate.call, (call) => whySessionEnds(call, candidate));
}

/** The check of a connection for turns, which was opened with `key`. */
export function connectionLook(
  known: AuthenticatedCall,
  located: Located,
  key: UpstreamKey | null,
): Look {
  return lookOnce(known, (call) => whyConnectionEnds(call, located, key));
}

/**
 * Checks each version of the configuration in full once. The key can expire at any time, so it is checked each time.
 */
function lookOnce(
  known: AuthenticatedCall,
  why: (call: AuthenticatedCall) => Promise<CutReason | null>,
): Look {
  let seen: RoutingTable | null = null;
  return async () => {
    const table = await isolateConfig.confirmed(known.env, known.ctx);
    if (table === null) return null;
    let { caller } = known;
    if (caller.key !== null || table.needKey !== 'none') {
      // Compares the key as it was sent, because another key may have its id by now.
      const identified = await identify(table, known.request.headers, known.query);
      if (identified.kind === 'rejected') return 'key_invalid';
      caller = identified.caller;
    }
    if (table === seen) return null;
    const reason = await why({ ...known, table, caller });
    if (reason === null) seen = table;
    return reason;
  };
}

async function whySessionEnds(
  call: AuthenticatedCall,
  { call: before, located, routed, spilledFrom, key, member, placements }: Candidate,
): Promise<CutReason | null> {
  const held = placements.map(({ group }) => group);
  const { config } = call.table.snapshot;
  const all = [...config.groups, ...config.auto_groups];
  if (all.some(({ name, draining }) => draining && held.includes(name))) return 'draining';
  const { model } = routed;
  const path = routed.path ?? located.path;
  // The upstream of the original call. At a member of a group it differs.
  const upstream = call.table.upstreams.get(routed.upstream.id);
  if (upstream === undefined) return 'upstream_closed';
  const operation = operationOf(call, upstream, path);
  if (operation.socket !== 'session') return 'upstream_closed';
  const now = await planAt(call, { ...located, upstream, path, operation, model }, spilledFrom);
  if (now.kind === 'rejected') return endBy(now);
  if (forbiddenAt(now) !== null) return 'key_forbidden';
  if (member === null) {
    if (now.members !== null || !isSameRoute(now, { located, key })) return 'restart';
  } else {
    const place = now.members?.places.get(member.id);
    if (place === undefined) return 'upstream_closed';
    const isSame = isSamePlace(place.located.upstream, located.upstream);
    if (!isSame || place.injected !== member.injected) return 'restart';
  }
  // Its messages were not checked so far, but must be from now on.
  const isBoundNow = isModelBound(call, now.located) && !isModelBound(before, located);
  if (member === null && isBoundNow) return 'group_changed';
  const groups = new Set(now.placements.map(({ group }) => group));
  // Removed limits of a key or a team no longer limit anything.
  const isLeft = held.some((name) => kindOfLimits(name) === null && !groups.has(name));
  return isLeft ? 'group_changed' : null;
}

async function whyConnectionEnds(
  call: AuthenticatedCall,
  located: Located,
  key: UpstreamKey | null,
): Promise<CutReason | null> {
  const upstream = call.table.upstreams.get(located.upstream.id);
  if (upstream === undefined) return 'upstream_closed';
  const operation = operationOf(call, upstream, located.path);
  if (operation.socket !== 'turns') return 'upstream_closed';
  const now = { ...located, upstream, operation };
  const found = await connectionKey(call, now);
  if (found.kind === 'rejected') return endBy(found);
  // Turns that go to members find their own connections.
  if (found.key === null || key === null) return null;
  return isSameRoute({ located: now, key: found.key }, { located, key }) ? null : 'restart';
}

function endBy({ reply: { reason } }: Rejected): CutReason {
  if (reason === 'key_missing' || reason === 'key_forbidden') return 'key_forbidden';
  // A new connection gets the answer that applies now.
  return reason === 'http_required' ? 'restart' : 'upstream_closed';
}

interface TurnRoute {
  readonly located: Pick<Located, 'upstream'>;
  readonly key: UpstreamKey;
}

/** Whether a new connection would use the same address and the same key. */
function isSameRoute(one: TurnRoute, other: TurnRoute): boolean {
  return (
    isSamePlace(one.located.upstream, other.located.upstream) &&
    one.key.fingerprint === other.key.fingerprint
  );
}

function isSamePlace(one: Upstream, other: Upstream): boolean {
  return one.baseUrl === other.baseUrl && one.via === other.via;
}

/** Why a client's message ends its session. */
interface Objection {
  readonly reason: CutReason;
  /** Detail of the reason, in plain text. */
  readonly why?: string;
}

/** Checks a client's message before it is forwarded. null if it may be. */
type Guard = (frame: Frame) => Objection | null;

/** Whether the model of a session must be the one that its upstream reads, because groups or keys depend on it. */
function isModelBound(
  call: AuthenticatedCall,
  { upstream, path, operation }: Pick<Located, 'upstream' | 'path' | 'operation'>,
): boolean {
  const { isTrue, isWanted } = modelRule(call, upstream, path, operation);
  return isTrue && isWanted;
}

/**
 * The guard of a session. null if its messages need no check. If the model must be verified, every message is checked:
 * all are parsed until the upstream knows the model, and afterwards those that may name one.
 */
export function sessionGuard(candidate: Candidate): Guard | null {
  const { call, located, members } = candidate;
  if (members !== null || isModelBound(call, located)) return strictGuard(candidate);
  // The header is trusted if callers pay themselves. A header that contradicts the first message is the caller's
  // mistake.
  return isNamedInMessage(located.path) && located.model !== null ? firstGuard(candidate) : null;
}

function firstGuard(candidate: Candidate): Guard {
  let isFirst = true;
  return (frame) => {
    if (!isFirst) return null;
    isFirst = false;
    const text = jsonTextOf(frame);
    const models = text === null ? null : readFrameModels(text);
    return models?.kind === 'read' ? otherModel(candidate, models) : null;
  };
}

function strictGuard(candidate: Candidate): Guard {
  const isInMessage = isNamedInMessage(candidate.located.path);
  // The upstream knows the URL's model from the upgrade, unless it reads the model only from a message.
  let isKnown = !isInMessage && candidate.located.operation.model.from === 'path';
  return (frame) => {
    const text = jsonTextOf(frame);
    if (text === null) return unreadable('the bytes are not UTF-8');
    if (!beginsObject(text)) return unreadable('it is not a JSON object');
    if (isKnown && !mayNameModel(text)) return null;
    const models = readFrameModels(text);
    if (models.kind === 'unreadable') return unreadable(models.why);
    if (isInMessage && isKnown && models.isSetup) {
      return { reason: 'message_refused', why: 'a second setup' };
    }
    if (isInMessage && !isKnown && !(models.isSetup && models.main.length > 0)) {
      return { reason: 'message_refused', why: 'expected a setup with its model first' };
    }
    // A session that only transcribes names no other model.
    isKnown ||= models.main.length > 0 || models.beside.length > 0;
    return otherModel(candidate, models);
  };
}

function unreadable(why: string): Objection {
  return { reason: 'message_unreadable', why };
}

function otherModel(candidate: Candidate, { main, beside }: FrameModels): Objection | null {
  const { call, located } = candidate;
  const { upstream, model } = located;
  const isSame = (one: string): boolean =>
    model !== null && call.table.routes.isSameModel(upstream, model, one);
  const isCounted = main.every(isSame) && beside.every((one) => isSame(one) || isBeside(one));
  return isCounted ? null : { reason: 'other_model' };

  /** Whether a session of that model would be in the same groups, so that the session's slot counts it too. */
  function isBeside(one: string): boolean {
    const { key } = call.caller;
    const placed = placementsOf(call, { ...candidate.routed, model: one });
    if (key !== null && forbiddenFor(key, placed) !== null) return false;
    const groups = placed.map(({ group }) => group).toSorted();
    return groups.join(' ') === groupsOf(candidate).join(' ');
  }
}

function groupsOf({ placements }: Candidate): readonly string[] {
  return placements.map(({ group }) => group).toSorted();
}

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

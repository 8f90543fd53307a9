import { isolateConfig } from '../../config/isolate-config.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { CutReason } from '../../core/words/outcome.ts';
import { kindOfLimits } from '../../routing/key-groups.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import type { AuthenticatedCall } from '../call.ts';
import { identify, type UpstreamKey } from '../identity/authenticate.ts';
import type { Located } from '../locate.ts';
import { operationOf } from '../operation-of.ts';
import { forbiddenAt, planAt, type Candidate } from '../plan.ts';
import type { Rejected } from '../result.ts';
import { connectionKey } from './connection-key.ts';
import { isModelBound } from './session-guard.ts';

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

import type { Upstream } from '../../contract/config/upstream.ts';
import { unifiedPath, type UnifiedShape } from '../../routing/upstreams.ts';
import { isUpstreamAllowed } from '../../routing/key-access.ts';
import { logEvent } from '../../runtime/log.ts';
import { runsOf } from '../../env.ts';
import { BoundedMap } from '../../core/parts/bounded-map.ts';
import { madeHash } from '../../runtime/secrets.ts';
import { within } from '../../runtime/async.ts';
import { rejected, type Rejected } from '../results/result.ts';
import type { AuthenticatedCall } from './call.ts';
import { goesByMembers, secretOfMember } from './key-without-slot.ts';

/**
 * Finds the upstream that created an object, which a caller requests by its id at `/v1`: a response, a batch, a file.
 * An id is recorded if its upstream could not be found otherwise, under a hash of the caller and the id. So a caller
 * finds only objects that it created itself.
 */

/** Maximum segments of a path that are looked up as ids, and maximum length of an id. */
const IDS_MAX = 4;
const ID_MAX = 500;

const NOT_LOOKED_UP =
  'Headgate could not look up which upstream created the object in this path, because the record did not answer in time. Try again, or name the upstream in the `headgate-upstream` header.';

/** The upstream of a call to `/v1` that names none, and whether it is the caller's only one. */
interface HomeUpstream {
  readonly upstream: Upstream;
  readonly isOnly: boolean;
}

/**
 * The upstream of a call to `/v1` that names none by a header or a model. It is the one that created the object in its
 * path, or the one for such calls of the caller. null if it is unknown. Rejects the call if the look-up fails, because
 * another upstream would report that the object does not exist.
 */
export async function homeUpstream(
  call: AuthenticatedCall,
  shape: UnifiedShape,
): Promise<string | null | Rejected> {
  const fallback = fallbackOf(call, shape);
  if (fallback?.isOnly === true) return fallback.upstream.id;
  const ids = idsIn(call.url.pathname);
  try {
    const made = ids.length === 0 ? null : await upstreamThatMade(call, ids);
    if (made === null) return fallback?.upstream.id ?? null;
    if (call.table.upstreams.has(made)) return made;
    const message = `Upstream \`${made}\`, which created the object in this path, was removed from the configuration. Create the object again, or ask the operator to restore the upstream.`;
    return rejected({ reason: 'upstream_unknown', message });
  } catch {
    logEvent('made_not_looked_up', {});
    return rejected({ reason: 'limiter_unavailable', message: NOT_LOOKED_UP });
  }
}

/** Whether a call requests an object by its id. */
export function namesMade(pathname: string): boolean {
  return idsIn(pathname).length > 0;
}

/** Whether an upstream's objects of a caller are found there without a record. */
export function isFoundAnyway(
  call: AuthenticatedCall,
  shape: UnifiedShape,
  upstream: Upstream,
): boolean {
  return fallbackOf(call, shape)?.upstream.id === upstream.id;
}

/** The segments of a path that may be ids: all behind the collection, as in `/v1/threads/{id}/runs/{id}`. */
function idsIn(pathname: string): readonly string[] {
  const [, , , ...rest] = pathname.split('/');
  const ids = rest.filter((each) => each !== '' && each.length <= ID_MAX).map(decoded);
  return ids.slice(0, IDS_MAX);
}

function fallbackOf(call: AuthenticatedCall, shape: UnifiedShape): HomeUpstream | null {
  const { upstreams, snapshot } = call.table;
  const hasShape = (upstream: Upstream): boolean => unifiedPath(upstream, shape, '') !== null;
  const usable = [...upstreams.values()].filter((one) => isUsable(call, one) && hasShape(one));
  const [only, second] = usable;
  if (only !== undefined && second === undefined) return { upstream: only, isOnly: true };
  const { default_upstream: byDefault } = snapshot.config;
  const named = byDefault === null ? undefined : upstreams.get(byDefault);
  if (named !== undefined && hasShape(named)) return { upstream: named, isOnly: false };
  const ofDialect = usable.filter(
    ({ dialect }) => dialect === shape || (dialect === 'azure' && shape === 'openai'),
  );
  const [first, other] = ofDialect;
  return first !== undefined && other === undefined ? { upstream: first, isOnly: false } : null;
}

/**
 * Whether a call may be sent to an upstream that it did not name. The caller's own provider key is sent only to the
 * default one.
 */
function isUsable(call: AuthenticatedCall, upstream: Upstream): boolean {
  const { caller, table } = call;
  const { key, credentials } = caller;
  if (credentials.providerKey !== null || !goesByMembers(caller, upstream)) return false;
  const secret = upstream.secret ?? secretOfMember(upstream, null, call);
  if (secret === null && !upstream.isKeyless && upstream.via === null) return false;
  return isUpstreamAllowed(key, upstream, table.routes);
}

/** Malformed escapes stay unchanged. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Number of Durable Objects for the ids of gateway keys, and the same number for ids of other callers. */
const OBJECTS = 16;

/** Timeout of such an object in milliseconds. Callers get an answer within 2 s. */
const ANSWER_LOST_MS = 1_800;

/** Maximum ids that this isolate remembers itself, because most objects are requested soon after their creation. */
const REMEMBERED_MAX = 2_000;

const remembered = new BoundedMap<string, string>(REMEMBERED_MAX);

export async function noteMade(
  call: AuthenticatedCall,
  { id: upstream }: Upstream,
  ids: readonly string[],
): Promise<void> {
  const { caller, hashes } = await hashed(call, ids);
  for (const hash of hashes) remembered.set(hash, upstream);
  try {
    const noted = objectOf(call, caller)?.noteMade({ caller, ids: hashes, upstream });
    await within(ANSWER_LOST_MS, noted ?? Promise.resolve(), call.after);
  } catch {
    logEvent('made_not_noted', { upstream });
  }
}

/**
 * The upstream that created one of these objects for the caller. null if it is unknown. Throws if the look-up fails.
 */
async function upstreamThatMade(
  call: AuthenticatedCall,
  ids: readonly string[],
): Promise<string | null> {
  const { caller, hashes } = await hashed(call, ids);
  const known = hashes.map((hash) => remembered.get(hash)).find((one) => one !== undefined);
  if (known !== undefined) return known;
  const lookup = objectOf(call, caller)?.madeBy(hashes);
  return within(ANSWER_LOST_MS, lookup ?? Promise.resolve(null), call.after);
}

async function hashed({ caller: { id }, table }: AuthenticatedCall, ids: readonly string[]) {
  const { fingerprintKey } = table.snapshot;
  const caller = await madeHash(fingerprintKey, id);
  const hashes = await Promise.all(ids.map((each) => madeHash(fingerprintKey, `${id}\n${each}`)));
  return { caller, hashes };
}

/**
 * Callers without a gateway key have their own Durable Objects, because made-up keys must not use up the room of
 * others.
 */
function objectOf({ env, caller }: AuthenticatedCall, hash: string) {
  const kind = caller.gatewayKeyId === null ? 'o' : 'k';
  const part = Number.parseInt(hash.slice(-2), 16) % OBJECTS;
  return runsOf(env, `made:${kind}${part}`, null);
}

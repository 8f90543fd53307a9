import type { Upstream } from '../../contract/config/upstream.ts';
import { runsOf } from '../../env.ts';
import { BoundedMap } from '../../core/parts/bounded-map.ts';
import { madeHash } from '../../runtime/digests.ts';
import { logEvent } from '../../runtime/log.ts';
import { within } from '../../runtime/async.ts';
import type { AuthenticatedCall } from '../call.ts';

/**
 * Records which upstream created an object that a caller requests by its id at `/v1`: a response, a batch, a file. An
 * id is recorded if its upstream could not be found otherwise (`home-upstream.ts`), under a hash of the caller and the
 * id. So a caller finds only objects that it created itself.
 */

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
export async function upstreamThatMade(
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

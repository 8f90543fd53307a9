import type { Upstream } from '../../contract/config/upstream.ts';
import { runsOf } from '../../env.ts';
import { BoundedMap } from '../../core/parts/bounded-map.ts';
import { madeHash } from '../../runtime/digests.ts';
import { logEvent } from '../../runtime/log.ts';
import { within } from '../../runtime/within.ts';
import type { AuthenticatedCall } from '../call.ts';

/**
 * Which upstream made an object that a caller asks for by its id at `/v1`: a response, a batch, a file. An id is noted if
 * its upstream could not be found without that (`home-upstream.ts`), under a hash of the caller and the id. So a caller
 * finds only what it made itself.
 */

/** Number of objects that ids of gateway keys are spread over, and as many for ids of other callers. */
const OBJECTS = 16;

/** How long an object may take to an answer, in milliseconds. Callers hear of it within 2 s. */
const ANSWER_LOST_MS = 1_800;

/** Maximum ids that this isolate remembers itself: what was made is mostly asked for soon. */
const REMEMBERED_MAX = 2_000;

const remembered = new BoundedMap<string, string>(REMEMBERED_MAX);

/** Notes that an upstream made these objects for a caller. */
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

/** Finds the upstream that made one of these objects for the caller; null: it is not known. Fails if that cannot be looked up. */
export async function upstreamThatMade(
  call: AuthenticatedCall,
  ids: readonly string[],
): Promise<string | null> {
  const { caller, hashes } = await hashed(call, ids);
  const known = hashes.map((hash) => remembered.get(hash)).find((one) => one !== undefined);
  if (known !== undefined) return known;
  const asked = objectOf(call, caller)?.madeBy(hashes);
  return within(ANSWER_LOST_MS, asked ?? Promise.resolve(null), call.after);
}

async function hashed({ caller: { id }, table }: AuthenticatedCall, ids: readonly string[]) {
  const { fingerprintKey } = table.snapshot;
  const caller = await madeHash(fingerprintKey, id);
  const hashes = await Promise.all(ids.map((each) => madeHash(fingerprintKey, `${id}\n${each}`)));
  return { caller, hashes };
}

/** Callers without a gateway key have objects of their own: made-up keys must not take the room of others. */
function objectOf({ env, caller }: AuthenticatedCall, hash: string) {
  const kind = caller.gatewayKeyId === null ? 'o' : 'k';
  const part = Number.parseInt(hash.slice(-2), 16) % OBJECTS;
  return runsOf(env, `made:${kind}${part}`, null);
}

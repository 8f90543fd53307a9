import type { Upstream } from '../../contract/config/upstream.ts';
import { unifiedPath, type UnifiedShape } from '../../routing/choose-upstream.ts';
import { isUpstreamAllowed } from '../../routing/key-access.ts';
import type { AuthenticatedCall } from '../call.ts';
import { goesByMembers } from '../members/uses-members.ts';
import { secretOfMember } from '../members/key-without-slot.ts';
import { logEvent } from '../../runtime/log.ts';
import { rejected, type Rejected } from '../result.ts';
import { upstreamThatMade } from './made-ids.ts';

/** Maximum segments of a path that are looked up as ids, and maximum length of an id. */
const IDS_MAX = 4;
const ID_MAX = 500;

const NOT_LOOKED_UP =
  'Headgate could not look up which upstream made what this path names: its record did not answer in time. Try again, or name the upstream in the header headgate-upstream.';

/** The upstream that a call to `/v1` goes to which names none, and whether there is no other one for its caller. */
interface HomeUpstream {
  readonly upstream: Upstream;
  readonly isOnly: boolean;
}

/**
 * Finds the upstream of a call to `/v1` that names none, neither by a header nor by a model: the one that made what its
 * path names, or the one that such calls of the caller go to. Null: it is not known. Rejected: that cannot be looked up, and
 * another upstream would say that what it did not make does not exist.
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
    const message = `The upstream ${made}, which made what this path names, has been removed.`;
    return rejected({ reason: 'upstream_unknown', message });
  } catch {
    logEvent('made_not_looked_up', {});
    return rejected({ reason: 'limiter_unavailable', message: NOT_LOOKED_UP });
  }
}

/** Whether a call asks for something by its id. */
export function namesMade(pathname: string): boolean {
  return idsIn(pathname).length > 0;
}

/** Whether what an upstream makes for a caller is found there without being noted. */
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
 * Whether a call of the caller may go to an upstream that it did not name. A provider key of its own is shown to none but
 * the default one.
 */
function isUsable(call: AuthenticatedCall, upstream: Upstream): boolean {
  const { caller, table } = call;
  const { key, credentials } = caller;
  if (credentials.providerKey !== null || !goesByMembers(caller, upstream)) return false;
  const secret = upstream.secret ?? secretOfMember(upstream, null, call);
  if (secret === null && !upstream.isKeyless && upstream.via === null) return false;
  return isUpstreamAllowed(key, upstream, table.routes);
}

/** Malformed escapes stay as they came. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

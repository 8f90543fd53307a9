import { BoundedMap } from '../../core/parts/bounded-map.ts';
import { steadyClock } from '../../runtime/clock.ts';
import { directoryOf, type Env } from '../../env.ts';
import { logEvent } from '../../runtime/log.ts';
import { poolName } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';
import { sharedBy } from '../../routing/pool.ts';
import { within } from '../../runtime/async.ts';
import type { RoutingTable } from '../../config/snapshots.ts';

/**
 * How long an answer is used. A pool must be idle for far longer before the directory may change its answer, so no
 * caller sends calls to both.
 */
const REMEMBERED_MS = 60_000;

/** Maximum answers that this isolate remembers. The oldest are dropped first. */
const REMEMBERED_MAX = 5_000;

const ANSWER_MS_MAX = 1_000;

/** The partition for each pool's calls. It holds plain data only, because requests may not share promises. */
const answers = new BoundedMap<string, { readonly partition: string; readonly until: number }>(
  REMEMBERED_MAX,
);

/**
 * The placement of a call, or that of the pool that its partition shares with others because its group has too many. It
 * costs nothing unless the group is full, and then an occasional round trip.
 */
export async function ownOrShared(
  env: Env,
  { snapshot }: RoutingTable,
  placement: Placement,
): Promise<Placement> {
  const { group, partition } = placement;
  if (partition === null || !snapshot.fullGroups.includes(group)) return placement;
  const name = poolName(group, partition);
  const known = answers.get(name);
  if (known !== undefined && steadyClock.now() < known.until) {
    return { ...placement, partition: known.partition };
  }
  try {
    const share = directoryOf(env).share(group, partition);
    const answered = sharedBy(partition, await within(ANSWER_MS_MAX, share));
    remember(name, answered);
    return { ...placement, partition: answered };
  } catch (error) {
    logEvent('directory_unreachable', { error: String(error) });
    // An old answer is better than none. Without any, an extra pool is better than a rejection.
    return known === undefined ? placement : { ...placement, partition: known.partition };
  }
}

function remember(name: string, partition: string): void {
  answers.set(name, { partition, until: steadyClock.now() + REMEMBERED_MS });
}

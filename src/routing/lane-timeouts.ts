import type { GroupConfig } from '../contract/config/config.ts';
import type { Lane } from '../core/words/ticket.ts';

type Queueing = Pick<GroupConfig, 'queue'>;

/** Maximum wait of a lane's calls in a group, instead of the group's time-out. null if the lane has none. */
export function laneTimeoutMs(config: Queueing, lane: Lane): number | null {
  return timeoutsOf(config)[lane];
}

/** Maximum wait of any call in a group, whatever its lane, unless its key sets one. */
export function longestTimeoutMs(config: Queueing): number {
  const ofLanes = Object.values(timeoutsOf(config)).filter((ms) => ms !== null);
  return Math.max(config.queue.timeout_ms, ...ofLanes);
}

const NONE = { high: null, normal: null, low: null };

/** A directory of an older release has no time-outs of lanes. */
function timeoutsOf({ queue }: Queueing): Readonly<Record<Lane, number | null>> {
  return queue.lane_timeouts_ms ?? NONE;
}

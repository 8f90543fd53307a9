import type { GroupConfig } from '../contract/config/config.ts';
import type { Lane } from '../core/words/ticket.ts';

type Queueing = Pick<GroupConfig, 'queue'>;

/** Maximum wait of a lane's calls in a group, instead of the group's time-out. null if the lane has none. */
export function laneTimeoutMs(config: Queueing, lane: Lane): number | null {
  return config.queue.lane_timeouts_ms[lane];
}

/** Maximum wait of any call in a group, whatever its lane, unless its key sets one. */
export function longestTimeoutMs(config: Queueing): number {
  const { timeout_ms: ofGroup, lane_timeouts_ms: byLane } = config.queue;
  return Math.max(ofGroup, ...Object.values(byLane).filter((ms) => ms !== null));
}

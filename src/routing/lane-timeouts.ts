import type { GroupConfig } from '../contract/config/config.ts';
import type { Lane } from '../core/words/ticket.ts';

type Queueing = Pick<GroupConfig, 'queue'>;

/** How long calls of a lane may wait in a group, in place of its time-out; null: no other time. */
export function laneTimeoutMs(config: Queueing, lane: Lane): number | null {
  return timeoutsOf(config)[lane];
}

/** How long any call may wait in a group, whatever its lane, if its key says nothing. */
export function longestTimeoutMs(config: Queueing): number {
  const ofLanes = Object.values(timeoutsOf(config)).filter((ms) => ms !== null);
  return Math.max(config.queue.timeout_ms, ...ofLanes);
}

const NONE = { high: null, normal: null, low: null };

/** Reads what a directory of the version before knows nothing of. */
function timeoutsOf({ queue }: Queueing): Readonly<Record<Lane, number | null>> {
  return queue.lane_timeouts_ms ?? NONE;
}

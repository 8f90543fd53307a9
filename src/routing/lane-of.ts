import { LANES, type Lane } from '../core/words/ticket.ts';
import type { Placement } from './placement.ts';

/** The lanes that a call may be in, whatever its groups say. */
export interface RequestedLanes {
  /** The lane that the caller asks for; null: whatever the key or the group gives. */
  readonly lane: Lane | null;
  /** The default lane of the caller's gateway key, and the highest lane that it allows; null: no gateway key. */
  readonly keyLanes: { readonly byDefault: Lane | null; readonly best: Lane | null };
}

/**
 * Finds the lane of a call in one of its groups: what the caller asks for, else the group's rule for its model,
 * else the default of the caller's key, else that of the group; never better than key and group allow.
 */
export function laneOf({ lane, keyLanes }: RequestedLanes, { config, ruledLane }: Placement): Lane {
  const { byDefault, best } = keyLanes;
  const asked = lane ?? ruledLane ?? byDefault ?? config?.queue.lane_default ?? 'normal';
  // Only the group can allow a lane to a caller without a gateway key, because any client can send the header.
  const isClaim = lane !== null && best === null;
  const ofGroup = config?.queue.lane_max ?? (isClaim ? 'normal' : 'high');
  return worst(asked, best ?? 'high', ofGroup);
}

function worst(...lanes: readonly Lane[]): Lane {
  return LANES.findLast((lane) => lanes.includes(lane)) ?? 'low';
}

import { LANES, type Lane } from '../core/ticket.ts';
import type { Placement } from '../routing/placement.ts';
import type { Ticket } from './admission.ts';

/**
 * The lane of a call in one of its groups: what the caller asks for, else the group's rule for its model,
 * else the default of the caller's key, else that of the group; never better than key and group allow.
 */
export function laneOf(
  { lane, keyLanes }: Pick<Ticket, 'lane' | 'keyLanes'>,
  { config, ruledLane }: Placement,
): Lane {
  const asked = lane ?? ruledLane ?? keyLanes.byDefault ?? config?.queue.lane_default ?? 'normal';
  return worst(asked, keyLanes.best, config?.queue.lane_max ?? 'high');
}

function worst(...lanes: readonly Lane[]): Lane {
  return LANES.findLast((lane) => lanes.includes(lane)) ?? 'low';
}

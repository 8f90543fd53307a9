import { QUEUE_TIMEOUT_MS } from '../contract/config/group.ts';
import { laneOf, type RequestedLanes } from './lane-of.ts';
import { laneTimeoutMs } from './lane-timeouts.ts';
import type { Placement } from './placement.ts';

interface WaitingCall extends RequestedLanes {
  readonly keyTimeoutMs: number | null;
}

/**
 * Maximum wait of a call in one of its groups: that of its key, or else of its lane in the group, or else of the group.
 */
export function timeoutMsOf(call: WaitingCall, placement: Placement): number {
  const { config } = placement;
  return ownTimeoutMsOf(call, placement) ?? config?.queue.timeout_ms ?? QUEUE_TIMEOUT_MS;
}

/** Maximum wait from the key or else the lane. null if neither sets one. */
export function ownTimeoutMsOf(call: WaitingCall, placement: Placement): number | null {
  if (call.keyTimeoutMs !== null) return call.keyTimeoutMs;
  const { config } = placement;
  return config === null ? null : laneTimeoutMs(config, laneOf(call, placement));
}

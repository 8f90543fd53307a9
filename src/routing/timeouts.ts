import { QUEUE_TIMEOUT_MS } from '../contract/config/group.ts';
import { laneOf, type RequestedLanes } from './lane-of.ts';
import { laneTimeoutMs } from './lane-timeouts.ts';
import type { Placement } from './placement.ts';

/** The part of a call that decides how long it may wait. */
interface WaitingCall extends RequestedLanes {
  readonly keyTimeoutMs: number | null;
}

/** How long a call may wait in one of its groups, by the operator: its key says it, else its lane there, else the group. */
export function timeoutMsOf(call: WaitingCall, placement: Placement): number {
  const { config } = placement;
  return ownTimeoutMsOf(call, placement) ?? config?.queue.timeout_ms ?? QUEUE_TIMEOUT_MS;
}

/** How long it may wait by its key, or else its lane; null: neither says anything else than the group. */
export function ownTimeoutMsOf(call: WaitingCall, placement: Placement): number | null {
  if (call.keyTimeoutMs !== null) return call.keyTimeoutMs;
  const { config } = placement;
  return config === null ? null : laneTimeoutMs(config, laneOf(call, placement));
}

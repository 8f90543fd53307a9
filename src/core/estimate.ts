import { slotsInUse, type GroupState } from './state.ts';
import { RETRY_AFTER_MAX_MS } from './settings.ts';

/** Weight of the newest sample in the mean hold time. */
const HOLD_SAMPLE_WEIGHT = 0.2;

/** Takes the time that a call held its slot into the mean. */
export function observeHold(state: GroupState, heldMs: number): void {
  state.holdMeanMs += HOLD_SAMPLE_WEIGHT * (heldMs - state.holdMeanMs);
}

/**
 * How long a waiter with `ahead` others before it will wait: the slots give one place every
 * `mean hold / slots`. At the most `RETRY_AFTER_MAX_MS` where nothing drains.
 */
export function estimateWaitMs(state: GroupState, ahead: number): number {
  const { slotsMax } = state.settings;
  if (slotsMax === 0) return RETRY_AFTER_MAX_MS;
  const free = Math.max(0, slotsMax - slotsInUse(state));
  const turns = Math.max(0, ahead + 1 - free);
  return Math.round((turns * state.holdMeanMs) / slotsMax);
}

/** The Retry-After of a rejection: the estimate, at least one second, at most a minute. */
export function retryAfterMs(state: GroupState): number {
  const estimate = estimateWaitMs(state, state.queue.line.length);
  return Math.min(RETRY_AFTER_MAX_MS, Math.max(1_000, estimate));
}

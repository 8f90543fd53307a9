import type { Outcome } from './words/outcome.ts';
import { slotsLearned } from './capacity.ts';
import type { InstantMs } from './words/ids.ts';
import { AUTO_COOLDOWN_MS, AUTO_COOLDOWN_SLOTS_MAX, LAG_REMEMBERED_MS } from './words/settings.ts';
import type { GroupState } from './state.ts';

/**
 * How long a slot stays down after its call ended so. Providers count a call as in flight for a while
 * after its last byte; where every slot counts, the next call would meet their 429.
 */
export function cooldownMs(state: GroupState, outcome: Outcome, now: InstantMs): number {
  const { settings } = state;
  switch (outcome) {
    case 'success':
      return resolveAuto(state, settings.releaseCooldownMs, now);
    case 'cancelled':
      return resolveAuto(state, settings.cancelCooldownMs, now);
    case 'failed':
      return settings.failureHoldMs;
    case 'refused':
    case 'unused':
      return 0;
  }
}

function resolveAuto(state: GroupState, configured: number | 'auto', now: InstantMs): number {
  if (configured !== 'auto') return configured;
  const isSmall = slotsLearned(state) <= AUTO_COOLDOWN_SLOTS_MAX;
  const lagsUntil = state.controls.lagSeenAt + LAG_REMEMBERED_MS;
  return isSmall || now < lagsUntil ? AUTO_COOLDOWN_MS : 0;
}

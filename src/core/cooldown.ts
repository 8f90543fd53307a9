import type { Outcome } from './outcome.ts';
import { AUTO_COOLDOWN_MS, AUTO_COOLDOWN_SLOTS_MAX, type GroupSettings } from './settings.ts';

/**
 * How long a slot stays down after its call ended so. Providers count a call as in flight for a while
 * after its last byte; where every slot counts, the next call would meet their 429.
 */
export function cooldownMs(settings: GroupSettings, outcome: Outcome): number {
  switch (outcome) {
    case 'success':
      return resolveAuto(settings, settings.releaseCooldownMs);
    case 'cancelled':
      return resolveAuto(settings, settings.cancelCooldownMs);
    case 'failed':
      return settings.failureHoldMs;
    case 'unused':
      return 0;
  }
}

function resolveAuto(settings: GroupSettings, configured: number | 'auto'): number {
  if (configured !== 'auto') return configured;
  return settings.slotsMax <= AUTO_COOLDOWN_SLOTS_MAX ? AUTO_COOLDOWN_MS : 0;
}

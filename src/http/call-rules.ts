import { groupSchema, type GroupConfig } from '../contract/config.ts';
import { countsTokens } from '../contract/metered.ts';
import type { Placement } from '../routing/placement.ts';
import type { HoldLimits } from '../upstream/held-call.ts';

/** What a group that nobody configured goes by. */
const DEFAULTS = groupSchema.parse({ name: 'defaults' });

/** Bounds of calls in automatic groups, and the widest that a configured one can set by default. */
const AUTO_LIMITS: HoldLimits = { idleMs: null, maxHoldMs: 3_600_000 };

/** What the groups of a call say of it while it is under way. */
export interface CallRules {
  readonly hold: HoldLimits;
  readonly retries: GroupConfig['retries'];
  readonly feedForward: GroupConfig['feed_forward'];
  readonly onSaturated: GroupConfig['on_saturated'];
  /** False: some group would rather refuse a call than let it wait. */
  readonly mayWait: boolean;
  /** Whether some group needs to know how many tokens the call uses, or what it costs. */
  readonly isMetered: boolean;
}

/**
 * The rules of a call in all its groups. Bounds are the strictest of all; what is about the upstream is
 * said by the narrowest group that stands for it.
 */
export function callRules(placements: readonly Placement[]): CallRules {
  let { idleMs, maxHoldMs } = AUTO_LIMITS;
  for (const { config } of placements) {
    if (config === null) continue;
    if (config.holds.idle_ms !== null) idleMs = Math.min(idleMs ?? Infinity, config.holds.idle_ms);
    maxHoldMs = Math.min(maxHoldMs, config.holds.max_hold_ms);
  }
  const ofProvider = placements.find(({ isOfProvider }) => isOfProvider)?.config ?? DEFAULTS;
  const spilling = placements.find(({ config }) => typeof config?.on_saturated === 'object');
  return {
    hold: { idleMs, maxHoldMs },
    retries: ofProvider.retries,
    feedForward: ofProvider.feed_forward,
    mayWait: placements.every(({ config }) => config?.on_saturated !== 'reject'),
    onSaturated: spilling?.config?.on_saturated ?? 'queue',
    isMetered: placements.some(({ config }) => config !== null && countsTokens(config)),
  };
}

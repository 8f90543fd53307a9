/** What the core needs to know of a group's configuration, and every bound that it keeps by itself. */
export interface GroupSettings {
  /** Slots of the group. 0 grants nothing; Infinity leaves concurrency unlimited. */
  readonly slotsMax: number;
  /** Waiters that may stand in the queue. */
  readonly queueLengthMax: number;
  /** How long a ticket may wait, in milliseconds. */
  readonly timeoutMs: number;
  /** A paused group queues and grants nothing. */
  readonly paused: boolean;
  /** How long a slot stays down after a call that ended well. `auto`: see `cooldownMs`. */
  readonly releaseCooldownMs: number | 'auto';
  /** How long a slot stays down after a call that was cut short. */
  readonly cancelCooldownMs: number | 'auto';
  /** How long a slot stays down after a definite 429 or 5xx of the upstream. */
  readonly failureHoldMs: number;
}

/** A lease nobody renewed for this long has lost its holder. Three renewals may be missed. */
export const LEASE_TTL_MS = 45_000;

/** How often a holder renews. A third of the TTL. */
export const RENEW_EVERY_MS = 15_000;

/**
 * After a reset nothing is granted for this long: callers ask again within 100 ms and take their old
 * place by their original time, which needs them to be back before the first grant.
 */
export const SETTLE_MS = 500;

/** The most waiters one group holds, whatever is configured: a parked call costs about 45 KB. */
export const WAITERS_MAX = 5_000;

/** A waiter that has not asked again this long after its slice ended has lost its caller. */
export const ORPHAN_GRACE_MS = 5_000;

/** How long an ended attempt is remembered, so that a late message about it changes nothing. */
export const TOMBSTONE_TTL_MS = 600_000;

/** The most ended attempts that are remembered; the oldest go first. */
export const TOMBSTONES_MAX = 10_000;

/** Hold time assumed before the first call has ended. */
export const HOLD_GUESS_MS = 10_000;

/** Retry-After is never above this: some SDKs ignore a larger one, others sleep it in full. */
export const RETRY_AFTER_MAX_MS = 60_000;

/** Below this many slots the provider's own lagging counter is felt, so `auto` cools slots down. */
export const AUTO_COOLDOWN_SLOTS_MAX = 4;

/** The `auto` cool-down of a small group. */
export const AUTO_COOLDOWN_MS = 200;

/** After waiters were sent back to be routed again, nobody younger is granted for this long. */
export const MOVE_SETTLE_MS = 250;

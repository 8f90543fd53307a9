import { instant, type InstantMs } from './words/ids.ts';
import type { Outcome } from './words/outcome.ts';
import type { Demand } from './words/usage.ts';
import { allows, nextChangeAt as breakerChangesAt } from './parts/breaker.ts';
import { slotsMaxNow } from './parts/ceiling.ts';
import { ONE_REQUEST } from './parts/demand.ts';
import { takeCooldownMs } from './parts/lag.ts';
import { nextChangeAt as pauseChangesAt, rampSlotsMax } from './parts/pause.ts';
import { roomAt as ratesRoomAt } from './parts/rates.ts';
import { NEVER, type GroupState, type Lease } from './state.ts';

/** Slots that may be in use now: by the limit, by what was learned, and by the ramp after a pause. */
export function slotsMaxAt(state: GroupState, now: InstantMs): number {
  return rampSlotsMax(state.controls.pause, slotsLearned(state), now);
}

/** Slots that may be in use but for a pause: by the limit and by what was learned. */
export function slotsLearned({ settings, controls }: GroupState): number {
  return slotsMaxNow(controls.ceiling, settings);
}

/**
 * Slots that calls hold, as far as the group knows: neither those that cool down, nor those that nobody has claimed, nor
 * lent ones that no call runs on.
 */
export function heldByCalls({ slotsInUse, unclaimed, slotsCooling, lending }: GroupState): number {
  return slotsInUse - unclaimed.slots - slotsCooling - lending.idle;
}

/** Slots of calls that are at the upstream, as far as the group knows. */
export function atUpstream(state: GroupState): number {
  return heldByCalls(state) - state.slotsWaitingElsewhere - state.slotsRefused;
}

/** Finds why the upstream stops the group, and until when; null: it does not. */
export function blockOf(
  { controls }: GroupState,
  now: InstantMs,
): { readonly reason: 'paused' | 'breaker_open'; readonly until: InstantMs } | null {
  const { pause, breaker } = controls;
  const until = breakerChangesAt(breaker, now);
  // Of both the one that lasts longer: who cannot wait so long need not wait for the other.
  if (until !== NEVER && until > pause.until) return { reason: 'breaker_open', until };
  return now < pause.until ? { reason: 'paused', until: pause.until } : null;
}

/** Whether the group grants nothing for a while: paused by its operator, or stopped by its upstream. */
export function isStopped(state: GroupState, now: InstantMs): boolean {
  return state.settings.paused || blockOf(state, now) !== null;
}

/**
 * Finds when there is room for `demand` if nothing but time changes: `now` if there is already, Infinity if
 * somebody must give something back first. Slots, requests and tokens are looked at together, so a call
 * takes all of them or none.
 */
export function roomAt(state: GroupState, demand: Demand, now: InstantMs): InstantMs {
  const { settings, controls, slotsInUse } = state;
  if (settings.paused || settings.slotsMax === 0) return NEVER;
  let at: number = Math.max(now, state.grantsFrom);
  const { pause, breaker } = controls;
  const slotsMax = slotsLearned(state);
  const slots = slotsInUse + demand.slots;
  if (slots > rampSlotsMax(pause, slotsMax, now)) {
    // A call that is wider than what was learned goes while nobody else does, or it would never go.
    if (slotsInUse > 0 && slots > slotsMax) return NEVER;
    at = Math.max(at, slotsInUse > 0 ? pauseChangesAt(pause, slotsMax, now) : pause.until);
  }
  if (!allows(breaker, now)) at = Math.max(at, breakerChangesAt(breaker, now));
  return instant(Math.max(at, ratesRoomAt(controls.rates, settings.rates, demand, now)));
}

/** Whether the next in line waits for time alone, and that not only because the group settles. */
export function isHeldByRates({ roomDueAt, grantsFrom }: GroupState): boolean {
  return roomDueAt !== NEVER && roomDueAt > grantsFrom;
}

/** Finds when the limits have a request to spare, whatever else a call demands. */
export function requestFreeAt({ settings, controls }: GroupState, now: InstantMs): InstantMs {
  return ratesRoomAt(controls.rates, settings.rates, ONE_REQUEST, now);
}

/** Whether there is room for `demand` now. */
export function hasRoom(state: GroupState, demand: Demand, now: InstantMs): boolean {
  return roomAt(state, demand, now) <= now;
}

/**
 * Takes how long the slots of a lease stay down that ended so. Upstreams count a call as in flight for a while after
 * its last byte; where every slot counts, the next one would be refused. A call that was refused for that is no
 * failure.
 */
export function cooldownMs(state: GroupState, { isLagging }: Lease, outcome: Outcome): number {
  const { releaseCooldownMs, cancelCooldownMs, failureCooldownMs } = state.settings;
  switch (outcome) {
    case 'success':
      return orLearned(state, releaseCooldownMs);
    case 'cancelled':
      return orLearned(state, cancelCooldownMs === 'auto' ? releaseCooldownMs : cancelCooldownMs);
    case 'failed':
      return isLagging ? orLearned(state, releaseCooldownMs) : failureCooldownMs;
    case 'refused':
    case 'unused':
      return 0;
  }
}

/** Computes how long a slot stays down after a call that ended well, but for one that tries less: as set, or as learned. */
export function cooldownInForceMs({ settings, controls }: GroupState): number {
  const { releaseCooldownMs } = settings;
  return releaseCooldownMs === 'auto' ? controls.lag.ms : releaseCooldownMs;
}

function orLearned({ controls }: GroupState, configured: number | 'auto'): number {
  return configured === 'auto' ? takeCooldownMs(controls.lag) : configured;
}

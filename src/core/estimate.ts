import type { InstantMs } from './words/ids.ts';
import type { TicketId } from './words/ids.ts';
import { RETURN_MS, RETRY_AFTER_MAX_MS, RETRY_AFTER_MIN_MS } from './words/settings.ts';
import { LANES } from './words/ticket.ts';
import { compareWaiters, laneLength, placeOf, queueLength, type Waiter } from './parts/queue.ts';
import { MINUTE_MS } from './parts/rate-limits.ts';
import { requestsAtOnce } from './parts/rates.ts';
import { blockOf, isHeldByRates, slotsLearned } from './capacity.ts';
import { isSplit, NEVER, type GroupState } from './state.ts';

/** Minimum weight of the newest sample in the mean hold. The first samples have equal weights. */
const HOLD_SAMPLE_WEIGHT = 0.2;

/** Maximum relative jitter of Retry-After, so that callers rejected together do not return together. */
const JITTER = 0.2;

/** Maximum time that a stop counts for, because a stop by an operator has no known end. */
const STOPPED_MAX_MS = 3_600_000;

export function observeHold(state: GroupState, heldMs: number): void {
  state.holdSamples += 1;
  const weight = Math.max(HOLD_SAMPLE_WEIGHT, 1 / state.holdSamples);
  state.holdMeanMs += weight * (heldMs - state.holdMeanMs);
}

/**
 * Returns the charge of a grant per slot before its hold is known: the mean hold. Before the first call has ended it is
 * one millisecond, so that tenants alternate. A higher charge would be corrected only for the first tenants, and new
 * ones level with them meanwhile.
 */
export function holdToChargeMs({ holdMeanMs, holdSamples }: GroupState): number {
  return holdSamples === 0 ? 1 : holdMeanMs;
}

/**
 * Estimates how long a waiter with `ahead` waiters before it will wait, in milliseconds.
 *
 * - After a stop, the slots free one place every `mean hold / slots`.
 * - Once the burst is used up, the request limit frees one place per interval.
 * - For tokens, only the time at which the next waiter has enough is known.
 *
 * It is `RETRY_AFTER_MAX_MS` if nothing drains.
 */
export function estimateWaitMs(state: GroupState, ahead: number, now: InstantMs): number {
  const slotsMax = slotsLearned(state);
  if (slotsMax === 0 || state.settings.rates.rpm === 0) return RETRY_AFTER_MAX_MS;
  const stoppedMs = Math.min(
    STOPPED_MAX_MS,
    Math.max(0, (blockOf(state.serving, now)?.until ?? now) - now),
  );
  const free = Math.max(0, slotsMax - state.slotsInUse);
  const turns = Math.max(0, ahead + 1 - free);
  const bySlots = (turns * state.holdMeanMs) / slotsMax;
  const firstMs = isHeldByRates(state) ? state.roomDueAt - now : 0;
  const byRequests = waitForRequestsMs(state, ahead, now);
  return Math.round(Math.max(stoppedMs + bySlots, firstMs, byRequests));
}

/**
 * The same for people and callers, with known facts only. null in these cases:
 *
 * - The wait depends on ends of calls, and none has ended lately.
 * - Nothing ends the wait.
 * - Tokens of earlier waiters decide.
 * @param turnsMin minimum number of calls that must end first, even if slots are free
 */
export function foreseenWaitMs(
  state: GroupState,
  ahead: number,
  now: InstantMs,
  turnsMin = 0,
): number | null {
  const { settings, serving, slotsInUse, holdMeanMs, holdSamples } = state;
  const slotsMax = slotsLearned(state);
  if (settings.paused || slotsMax === 0 || settings.rates.rpm === 0) return null;
  const stoppedUntil = blockOf(serving, now)?.until ?? now;
  if (stoppedUntil === NEVER) return null;
  const turns = Math.max(turnsMin, ahead + 1 - Math.max(0, slotsMax - slotsInUse));
  const isUnknown = holdSamples === 0 || (slotsInUse > 0 && isStalled(state, now));
  if (turns > 0 && isUnknown) return null;
  const bySlots = turns > 0 ? (turns * holdMeanMs) / slotsMax : 0;
  const firstMs = isHeldByRates(state) ? state.roomDueAt - now : 0;
  const byRequests = waitForRequestsMs(state, ahead, now);
  const stoppedMs = stoppedUntil - now;
  const isByTokens = ahead > 0 && firstMs > Math.max(stoppedMs, waitForRequestsMs(state, 0, now));
  if (isByTokens && settings.rates.startsPerS === null) return null;
  return Math.round(Math.max(0, stoppedMs + bySlots, firstMs, byRequests));
}

/** Estimates the wait by the request limit alone. Calls within the burst do not wait. */
function waitForRequestsMs(state: GroupState, ahead: number, now: InstantMs): number {
  let perMinute = 0;
  let atOnce = 0;
  for (const { settings, controls } of state.serving) {
    const { rpm } = settings.rates;
    perMinute += rpm ?? Infinity;
    atOnce += rpm === null ? Infinity : requestsAtOnce(controls.rates, settings.rates, now);
  }
  const waitMs = waitForMs(ahead, perMinute, atOnce);
  const { settings, controls } = state;
  if (!isSplit(state) || settings.rates.rpm === null) return waitMs;
  const ofAll = requestsAtOnce(controls.rates, settings.rates, now);
  return Math.max(waitMs, waitForMs(ahead, settings.rates.rpm, ofAll));
}

function waitForMs(ahead: number, perMinute: number, atOnce: number): number {
  return perMinute === Infinity ? 0 : (Math.max(0, ahead + 1 - atOnce) * MINUTE_MS) / perMinute;
}

/**
 * Estimates how many waiters go before this one:
 *
 * - all of higher lanes
 * - the older ones of its tenant
 * - of each other tenant in its lane, as many as its own has up to it
 *
 * It ignores future calls, weights and owed turns.
 */
export function waitersAhead({ queue }: GroupState, waiter: Waiter): number {
  if (waiter.isPromoted) return 0;
  let ahead = 0;
  for (const lane of LANES) {
    if (lane === waiter.lane) break;
    ahead += laneLength(queue, lane);
  }
  const { byTenant, backlogs } = queue.lanes[waiter.lane];
  const own = placeOf(byTenant.get(waiter.tenant)?.waiters ?? [], waiter, compareWaiters);
  for (let index = 0; index <= own; index += 1) {
    const others = (backlogs[index] ?? 0) - 1;
    if (others <= 0) break;
    ahead += others;
  }
  return ahead + own;
}

/**
 * Returns Retry-After for a wait of about `estimateMs`, between one second and one minute, in milliseconds. The bounds
 * apply before the jitter. Otherwise all callers with the maximum would return together.
 */
export function retryAfterMs(
  estimateMs: number,
  ticketId: TicketId,
  leastMs = RETRY_AFTER_MIN_MS,
): number {
  const least = leastMs / (1 - JITTER);
  const most = RETRY_AFTER_MAX_MS / (1 + JITTER);
  const spread = 1 - JITTER + 2 * JITTER * fraction(ticketId);
  return Math.round(Math.min(most, Math.max(least, estimateMs)) * spread);
}

/**
 * Returns Retry-After for a wait of unknown length. A shorter one would override a client's own backoff and use up all
 * its attempts in a moment.
 */
export function retryUnforeseenMs(ticketId: TicketId): number {
  return retryAfterMs(RETURN_MS, ticketId, RETURN_MS);
}

/**
 * Returns Retry-After for a call that would wait behind `ahead` waiters. If no call has ended for a long time, a short
 * value would be a wrong guess.
 */
export function retryBehindMs(
  state: GroupState,
  ahead: number,
  ticketId: TicketId,
  now: InstantMs,
): number {
  const isUnforeseen =
    state.slotsInUse > 0 && isStalled(state, now) && foreseenWaitMs(state, ahead, now) === null;
  const leastMs = isUnforeseen ? RETURN_MS : RETRY_AFTER_MIN_MS;
  return retryAfterMs(estimateWaitMs(state, ahead, now), ticketId, leastMs);
}

/** The same for a call that would join the end of the queue. */
export function retryAtEndMs(state: GroupState, ticketId: TicketId, now: InstantMs): number {
  return retryBehindMs(state, queueLength(state.queue), ticketId, now);
}

/** Mean time between the ends of calls while all slots are in use, in milliseconds. */
export function endGapMs(state: GroupState): number {
  return state.holdMeanMs / Math.max(1, slotsLearned(state));
}

/** Shortest time without an end after which a group may count as stalled, in milliseconds. */
const STALLED_AFTER_MS_MIN = 2_000;

/** The same, in mean times between two ends. */
const STALLED_AFTER_GAPS = 5;

function stalledAfterMs(state: GroupState): number {
  return Math.max(STALLED_AFTER_MS_MIN, STALLED_AFTER_GAPS * endGapMs(state));
}

/**
 * Time since a call last ended or began, in milliseconds. Calls that begin count, because no call can end while the
 * group is idle. Infinity if none has since the state was created.
 */
export function quietMs({ lastEndAt, lastGrantAt }: GroupState, now: InstantMs): number {
  return Math.max(0, now - Math.max(lastEndAt, lastGrantAt));
}

/** Whether no call has ended for so long that waits for slots cannot be estimated. */
export function isStalled(state: GroupState, now: InstantMs): boolean {
  return quietMs(state, now) > stalledAfterMs(state);
}

/** Hashes a text to a number in [0, 1) with FNV-1a, because the core has no randomness. */
function fraction(text: string): number {
  let hash = 2_166_136_261;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 16_777_619);
  }
  return (hash >>> 0) / 2 ** 32;
}

/**
 * Delays of messages to a pool that come again after they failed. A pool that is reset fails all of them in the same
 * instant, and one that is overloaded stays so if they all come back together: each is drawn at random.
 */

/** Draws a number from 0 up to 1, as `Math.random` does. */
export type Random = () => number;

/** Times before the first retry of a call that does not know its place. */
const FIRST_MIN_MS = 50;
const FIRST_MAX_MS = 150;

/** How much earlier than waiters holders are back, which no grant may come before. */
const HOLDERS_FIRST_MS = 100;

/** How much later a waiter asks for each one that was ahead of it, and how much later at most. */
const PER_PLACE_MS = 1;
const BY_PLACE_MAX_MS = 2_000;

/** Least part of the time by place that is waited: places that are far apart keep their order. */
const BY_PLACE_MIN = 0.75;

/** Bounds of a further retry: the first, doubled each time up to the other. */
const RETRY_MS = 50;
const RETRY_MAX_MS = 1_000;

/** Maximum of a holder's. Its stream goes on meanwhile, and its slots are counted. */
const HOLDER_RETRY_MAX_MS = 4_000;

/** Bounds of a retry of what an overloaded object did not take. */
const OVERLOADED_MS = 250;
const OVERLOADED_MAX_MS = 4_000;

/** Bounds of the pause of a call that waits for the end of one: an object with many of those answers at once. */
const OPENED_MIN_MS = 250;
const OPENED_MAX_MS = 750;

/** Bounds of the pauses before a release is tried again, ten seconds together. */
const RELEASE_MAX_MS = [1_000, 3_000, 6_000];

/**
 * Draws how long after its first failure in a row an acquire call is made again. `position`: how many were ahead of
 * it when it last heard; null: it has not heard yet.
 */
export function firstRetryMs(position: number | null, random: Random = Math.random): number {
  if (position === null) return FIRST_MIN_MS + (FIRST_MAX_MS - FIRST_MIN_MS) * random();
  const byPlaceMs = Math.min(BY_PLACE_MAX_MS - HOLDERS_FIRST_MS, position * PER_PLACE_MS);
  return HOLDERS_FIRST_MS + byPlaceMs * (BY_PLACE_MIN + (1 - BY_PLACE_MIN) * random());
}

/** Draws how long after the failure before it an acquire call is made again, once it was `retries` times. */
export function retryMs(retries: number, random: Random = Math.random): number {
  return backOff(RETRY_MS, RETRY_MAX_MS, retries, random);
}

/** Draws how long after it was not taken for overload a message is sent again, once it was `retries` times. */
export function overloadedRetryMs(retries: number, random: Random = Math.random): number {
  return backOff(OVERLOADED_MS, OVERLOADED_MAX_MS, retries, random);
}

/** Draws how long until a call asks again for the end of a pause, after it met an overloaded object so often in a row. */
export function openedRetryMs(overloads: number, random: Random = Math.random): number {
  if (overloads > 0) return overloadedRetryMs(overloads, random);
  return OPENED_MIN_MS + (OPENED_MAX_MS - OPENED_MIN_MS) * random();
}

/** Draws how long after a lost renewal its holder resumes. */
export function resumeMs(random: Random = Math.random): number {
  return HOLDERS_FIRST_MS * random();
}

/** Draws how long after a resumption failed the next one is tried, once it was `retries` times. */
export function resumeRetryMs(
  retries: number,
  isOverload: boolean,
  random: Random = Math.random,
): number {
  const firstMs = isOverload ? OVERLOADED_MS : RETRY_MS;
  return backOff(firstMs, HOLDER_RETRY_MAX_MS, retries, random);
}

/** Draws the pauses between the tries of a release. */
export function releasePausesMs(random: Random = Math.random): number[] {
  return RELEASE_MAX_MS.map((maxMs) => maxMs * random());
}

function backOff(firstMs: number, maxMs: number, retries: number, random: Random): number {
  return Math.min(maxMs, firstMs * 2 ** retries) * random();
}

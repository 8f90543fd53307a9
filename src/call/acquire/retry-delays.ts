import { pause, within, type Schedule } from '../../runtime/async.ts';

/**
 * Retried messages to a pool, and their delays. A reset pool fails all of them at the same time, and an overloaded one
 * stays overloaded if they all return together, so each delay is random.
 */

/** A random number from 0 (inclusive) to 1 (exclusive), like `Math.random`. */
export type Random = () => number;

/** Bounds of the first retry of a call with an unknown position. */
const FIRST_MIN_MS = 50;
const FIRST_MAX_MS = 150;

/** How much earlier than waiters holders return. No grant may precede them. */
const HOLDERS_FIRST_MS = 100;

/** How much later a waiter retries for each call that was ahead of it, and the maximum. */
const PER_PLACE_MS = 1;
const BY_PLACE_MAX_MS = 2_000;

/** Minimum share of that time, so that distant positions keep their order. */
const BY_PLACE_MIN = 0.75;

/** Bounds of further retries. The delay doubles from the first to the second. */
const RETRY_MS = 50;
const RETRY_MAX_MS = 1_000;

/** Maximum delay of a holder. Its stream continues meanwhile, and its slots are counted. */
const HOLDER_RETRY_MAX_MS = 4_000;

/** Bounds of a retry after an overload. */
const OVERLOADED_MS = 250;
const OVERLOADED_MAX_MS = 4_000;

/**
 * Bounds of the delay for calls that wait for the end of a pause. An object with many such calls answers immediately.
 */
const OPENED_MIN_MS = 250;
const OPENED_MAX_MS = 750;

/** Bounds of the pauses before a release is retried, ten seconds in total. */
const RELEASE_MAX_MS = [1_000, 3_000, 6_000];

/**
 * The delay of an acquire call after its first failure in a row. `position` is the last reported number of calls ahead
 * of it. null if it was not reported yet.
 */
export function firstRetryMs(position: number | null, random: Random = Math.random): number {
  if (position === null) return FIRST_MIN_MS + (FIRST_MAX_MS - FIRST_MIN_MS) * random();
  const byPlaceMs = Math.min(BY_PLACE_MAX_MS - HOLDERS_FIRST_MS, position * PER_PLACE_MS);
  return HOLDERS_FIRST_MS + byPlaceMs * (BY_PLACE_MIN + (1 - BY_PLACE_MIN) * random());
}

export function retryMs(retries: number, random: Random = Math.random): number {
  return backOff(RETRY_MS, RETRY_MAX_MS, retries, random);
}

/** The delay of a message after an overload, and after `retries` earlier retries. */
export function overloadedRetryMs(retries: number, random: Random = Math.random): number {
  return backOff(OVERLOADED_MS, OVERLOADED_MAX_MS, retries, random);
}

/** The delay before a call asks again whether a pause has ended, after `overloads` overloaded answers in a row. */
export function openedRetryMs(overloads: number, random: Random = Math.random): number {
  if (overloads > 0) return overloadedRetryMs(overloads, random);
  return OPENED_MIN_MS + (OPENED_MAX_MS - OPENED_MIN_MS) * random();
}

/** The delay before a holder resumes its lease after a lost renewal. */
export function resumeMs(random: Random = Math.random): number {
  return HOLDERS_FIRST_MS * random();
}

/** The delay before a failed resumption is retried, after `retries` earlier retries. */
export function resumeRetryMs(
  retries: number,
  isOverloaded: boolean,
  random: Random = Math.random,
): number {
  const firstMs = isOverloaded ? OVERLOADED_MS : RETRY_MS;
  return backOff(firstMs, HOLDER_RETRY_MAX_MS, retries, random);
}

export function releasePausesMs(random: Random = Math.random): number[] {
  return RELEASE_MAX_MS.map((maxMs) => maxMs * random());
}

function backOff(firstMs: number, maxMs: number, retries: number, random: Random): number {
  return Math.min(maxMs, firstMs * 2 ** retries) * random();
}

/** Sends a message again until it is answered, while that is needed. null if there was no answer. */
export async function untilAnswered<T>(
  send: () => Promise<T>,
  lostMs: number,
  isNeeded: () => boolean,
  after: Schedule,
): Promise<T | null> {
  for (let retries = 0; isNeeded(); retries += 1) {
    const sending = send();
    try {
      return await within(lostMs, sending, after);
    } catch (error) {
      // It may still fail after its time.
      sending.catch(() => {});
      await pause(resumeRetryMs(retries, isOverload(error)), after);
    }
  }
  return null;
}

interface FailureRun {
  readonly times: number;
  readonly since: number;
}

const NONE: FailureRun = { times: 0, since: Infinity };

/**
 * Minimum duration and number of failed acquire calls before a group counts as unreachable. The duration matters
 * because the runtime may have retried each call for seconds.
 */
const OUT_OF_REACH_MS = 3_000;
const OUT_OF_REACH_TIMES = 3;

/** Platform error when an account sends too many requests to all its objects together. */
const ACCOUNT_OVERLOADED = /too much load on Durable Objects/i;

/** Platform error for requests to objects and storage once the account has reached its spending cap. */
const ACCOUNT_CAPPED = /account'?s? spending (cap|limit)/i;

/**
 * Whether a message was refused because the account has reached its spending cap. Only the account's owner can raise
 * it.
 */
export function isCapped(error: unknown): boolean {
  const { message } = (error ?? {}) as { message?: unknown };
  return typeof message === 'string' && ACCOUNT_CAPPED.test(message);
}

export function isOverload(error: unknown): boolean {
  const { overloaded, message } = (error ?? {}) as { overloaded?: unknown; message?: unknown };
  return overloaded === true || (typeof message === 'string' && ACCOUNT_OVERLOADED.test(message));
}

/** Returns whether an object was reset while it processed a message. */
export function isReset(error: unknown): boolean {
  return (error as { durableObjectReset?: unknown } | null)?.durableObjectReset === true;
}

/** The failures of a call's messages to a pool since the pool last answered. */
export class FailureStreak {
  #failed = NONE;
  #overloaded = NONE;

  /** Call it when the pool has answered. */
  end(): void {
    this.#failed = NONE;
    this.#overloaded = NONE;
  }

  /** Returns how many such failures came before. */
  noteFailed(now: number): number {
    this.#failed = longer(this.#failed, now);
    return this.#failed.times - 1;
  }

  /** An overloaded object responds, so it is reachable. Returns how many such failures came before. */
  noteOverloaded(now: number): number {
    this.#failed = NONE;
    this.#overloaded = longer(this.#overloaded, now);
    return this.#overloaded.times - 1;
  }

  isOutOfReach(now: number): boolean {
    const { times, since } = this.#failed;
    return times >= OUT_OF_REACH_TIMES && now - since >= OUT_OF_REACH_MS;
  }

  /** Whether the last response of the pool was that it is overloaded. */
  get isOverloaded(): boolean {
    return this.#overloaded.times > 0 && this.#failed.times === 0;
  }

  /** How long the pool has been overloaded. 0 if it is not. */
  overloadedMs(now: number): number {
    return this.isOverloaded ? now - this.#overloaded.since : 0;
  }
}

function longer({ times, since }: FailureRun, now: number): FailureRun {
  return { times: times + 1, since: Math.min(since, now) };
}

/** How often the same was met in a row, and since when. */
interface FailureRun {
  readonly times: number;
  readonly since: number;
}

const NONE: FailureRun = { times: 0, since: Infinity };

/**
 * How long acquire calls must fail, and how many, for the group to count as out of reach. By the clock: the runtime
 * itself may have tried each of them again for seconds.
 */
const OUT_OF_REACH_MS = 3_000;
const OUT_OF_REACH_TIMES = 3;

/** Message by which the platform bounds what an account asks of all its objects together. */
const ACCOUNT_OVERLOADED = /too much load on Durable Objects/i;

/** Message of the platform's refusals of objects and storage once the account has reached its spending cap. */
const ACCOUNT_CAPPED = /account'?s? spending (cap|limit)/i;

/** Whether a message was refused because the account has reached its spending cap. Only the account's owner can raise it. */
export function isCapped(error: unknown): boolean {
  const { message } = (error ?? {}) as { message?: unknown };
  return typeof message === 'string' && ACCOUNT_CAPPED.test(message);
}

/** Tells whether a message was not taken because there are too many. */
export function isOverload(error: unknown): boolean {
  const { overloaded, message } = (error ?? {}) as { overloaded?: unknown; message?: unknown };
  return overloaded === true || (typeof message === 'string' && ACCOUNT_OVERLOADED.test(message));
}

/** Tells whether an object was reset while it had a message. */
export function isReset(error: unknown): boolean {
  return (error as { durableObjectReset?: unknown } | null)?.durableObjectReset === true;
}

/** The failures of a call's messages to a pool since the pool last answered. */
export class FailureStreak {
  #failed = NONE;
  #overloaded = NONE;

  /** The pool has answered. */
  end(): void {
    this.#failed = NONE;
    this.#overloaded = NONE;
  }

  /** Returns how often it has failed so before. */
  noteFailed(now: number): number {
    this.#failed = longer(this.#failed, now);
    return this.#failed.times - 1;
  }

  /** An object that is overloaded is there: it is no longer out of reach. Returns how often it has said so before. */
  noteOverloaded(now: number): number {
    this.#failed = NONE;
    this.#overloaded = longer(this.#overloaded, now);
    return this.#overloaded.times - 1;
  }

  isOutOfReach(now: number): boolean {
    const { times, since } = this.#failed;
    return times >= OUT_OF_REACH_TIMES && now - since >= OUT_OF_REACH_MS;
  }

  /** Whether the last that was heard of the pool is that it is overloaded. */
  get isOverloaded(): boolean {
    return this.#overloaded.times > 0 && this.#failed.times === 0;
  }

  /** How long the pool has not answered for overload; 0: it is not that. */
  overloadedMs(now: number): number {
    return this.isOverloaded ? now - this.#overloaded.since : 0;
  }
}

function longer({ times, since }: FailureRun, now: number): FailureRun {
  return { times: times + 1, since: Math.min(since, now) };
}

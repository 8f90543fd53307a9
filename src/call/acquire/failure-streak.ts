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

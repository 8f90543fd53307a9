import type { AcquireAnswer, AcquireRequest } from '../../contract/rpc/group-rpc.ts';
import type { Schedule, AbortSource } from '../../runtime/async.ts';
import { SLICE_MAX_MS } from '../../core/words/settings.ts';
import { isCapped, isOverload, isReset } from './retry-delays.ts';
import type { PoolSource } from './pools.ts';

/** Acquire calls to a pool, which stay open while the caller waits, and the length of each. */

export type GrantedAnswer = Extract<AcquireAnswer, { kind: 'granted' }>;

interface Failed {
  readonly kind: 'failed';
  readonly overloaded: boolean;
  /** The account has reached its spending cap. */
  readonly capped: boolean;
  /** The object was reset while it processed the call. */
  readonly reset: boolean;
}

export type AcquireEnd = AcquireAnswer | Failed;

/**
 * A grant, and the acquire calls still in transit. If one of them returns a grant, that answer becomes the lease's
 * holder.
 */
export interface GrantedTurn {
  readonly kind: 'granted';
  readonly granted: GrantedAnswer;
  readonly late: readonly Promise<AcquireEnd>[];
}

export type WaitStep =
  | GrantedTurn
  | Exclude<AcquireEnd, { kind: 'granted' }>
  /** The end of the call that this one superseded. null if it had ended before, or there was none. */
  | { readonly kind: 'slice_over'; readonly superseded: AcquireEnd | 'silent' | null }
  | { readonly kind: 'rested' }
  | { readonly kind: 'left' };

const RESTED: WaitStep = { kind: 'rested' };

/** Acquire calls of a ticket that may still be answered: the last one, and those that it superseded. */
export class OpenCalls {
  readonly #pool: PoolSource;
  readonly #after: Schedule;
  readonly #left: Promise<WaitStep>;
  /** The last one first. */
  #open: readonly Promise<AcquireEnd>[] = [];
  /** One of them was lost, and perhaps a lease with it. */
  #isOneLost = false;
  /** All had ended when one was made, and one of them was lost. */
  #hasLostAll = false;

  constructor(pool: PoolSource, after: Schedule, signal: AbortSource) {
    this.#pool = pool;
    this.#after = after;
    this.#left = untilAborted(signal);
  }

  /**
   * Makes an acquire call and waits for the next event: its answer, a grant to a superseded call, the end of `waitMs`,
   * or the caller leaving. A live object answers a call immediately when the next one supersedes it.
   */
  acquire(request: AcquireRequest, waitMs: number): Promise<WaitStep> {
    const [before] = this.#open;
    let superseded: AcquireEnd | 'silent' | null = before === undefined ? null : 'silent';
    const older = this.#grants((one, end) => {
      if (one === before) superseded = end;
    });
    this.#hasLostAll ||= this.#isOneLost && this.#open.length === 0;
    const call = acquireCall(this.#pool, this.#hasLostAll ? { ...request, isAnew: true } : request);
    this.#open = [call, ...this.#open];
    const answer = call.then((end) => this.#turnOf(call, end));
    const sliceOver = (): WaitStep => ({ kind: 'slice_over', superseded });
    return this.#first([answer, ...older], waitMs, sliceOver);
  }

  /** Makes no call for a while. The caller leaving, or a grant to an open call, ends that early. */
  rest(ms: number): Promise<WaitStep> {
    return this.#first(this.#grants(), ms, () => RESTED);
  }

  /**
   * Stops asking. A lease that an abandoned call may still bring is released explicitly, because disposal alone would
   * count it as used.
   */
  end<End>(end: End): End {
    for (const one of this.#open) {
      one
        .then(async (late) => {
          if (late.kind !== 'granted') return;
          const { lease } = late;
          await lease.release('unused', null).finally(() => lease[Symbol.dispose]());
        })
        .catch(() => {});
    }
    return end;
  }

  async #first(turns: Promise<WaitStep>[], ms: number, elapsed: () => WaitStep): Promise<WaitStep> {
    const { promise, resolve } = Promise.withResolvers<WaitStep>();
    const callOff = this.#after(ms, () => resolve(elapsed()));
    const turn = await Promise.race([...turns, promise, this.#left]);
    callOff();
    return turn;
  }

  /** Grants to the calls that are open now. Other answers to them no longer matter to the ticket. */
  #grants(
    onEnd: (one: Promise<AcquireEnd>, end: AcquireEnd) => void = () => {},
  ): Promise<WaitStep>[] {
    return this.#open.map(async (one) => {
      const end = await one;
      onEnd(one, end);
      const turn = this.#turnOf(one, end);
      return turn.kind === 'granted' ? turn : new Promise<never>(() => {});
    });
  }

  /** A grant stays among the open calls, because it may have arrived unnoticed. */
  #turnOf(call: Promise<AcquireEnd>, end: AcquireEnd): WaitStep {
    const others = this.#open.filter((one) => one !== call);
    if (end.kind === 'granted') return { kind: 'granted', granted: end, late: others };
    this.#open = others;
    this.#isOneLost ||= end.kind === 'failed' && !end.overloaded;
    return end;
  }
}

async function acquireCall(pool: PoolSource, request: AcquireRequest): Promise<AcquireEnd> {
  try {
    return await pool().acquire(request);
  } catch (error) {
    const [overloaded, capped] = [isOverload(error), isCapped(error)];
    return { kind: 'failed', overloaded, capped, reset: isReset(error) };
  }
}

function untilAborted(signal: AbortSource): Promise<WaitStep> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve({ kind: 'left' });
    signal.addEventListener('abort', () => resolve({ kind: 'left' }));
  });
}

/** Length of the first slice, and minimum length of all. */
const SLICE_MIN_MS = 8_000;

/**
 * Length of the slice of a call that does not allow queueing, and minimum length for a caller with position updates.
 */
const SLICE_SHORT_MS = 2_000;

/** How long before the end of its slice or wait the Worker asks again, so that its queue position never expires. */
export const CALL_AHEAD_MS = 1_000;

export interface PositionUpdate extends Pick<PendingAnswer, 'position' | 'waitsFor' | 'quietMs'> {
  /** null if it cannot be estimated. */
  readonly estimateMs: number | null;
}

type PendingAnswer = Extract<AcquireAnswer, { kind: 'pending' }>;

export function placeIn({
  estimateMs,
  isUnforeseen,
  ...place
}: Omit<PendingAnswer, 'kind' | 'configVersion'>): PositionUpdate {
  return { ...place, estimateMs: isUnforeseen === true ? null : estimateMs };
}

export interface PositionListener {
  readonly everyMs: number;
  report(place: PositionUpdate): void;
}

/**
 * Returns how long a call waits before it asks its pool again. It is half the estimated wait, so that deferred waiters
 * poll rarely and still notice changes in time. Without an estimate, it is the longest slice.
 */
export function sliceFor(
  estimateMs: number | null,
  wait: boolean,
  listener: PositionListener | null,
): number {
  const sliceMaxMs = wait ? SLICE_MAX_MS : SLICE_SHORT_MS;
  const sliceMs = Math.min(sliceMaxMs, Math.max(SLICE_MIN_MS, (estimateMs ?? Infinity) / 2));
  // Each call returns the newest position, so that each comment can include it.
  return listener === null ? sliceMs : Math.min(sliceMs, reportedEveryMs(listener) + CALL_AHEAD_MS);
}

/**
 * How long a deferred waiter waits before it polls again. `leftMs` is how much of its maximum wait is left. It is
 * parked before that ends.
 */
export function restFor(
  askAgainMs: number,
  leftMs: number,
  listener: PositionListener | null,
): number {
  const restMs = listener === null ? askAgainMs : Math.min(askAgainMs, reportedEveryMs(listener));
  const parkedInMs = leftMs - CALL_AHEAD_MS;
  return parkedInMs > 0 ? Math.min(restMs, parkedInMs) : restMs;
}

function reportedEveryMs({ everyMs }: PositionListener): number {
  return Math.max(SLICE_SHORT_MS - CALL_AHEAD_MS, everyMs);
}

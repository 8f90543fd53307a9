import type { AcquireAnswer, AcquireRequest } from '../../contract/rpc/group-rpc.ts';
import type { Schedule } from '../../runtime/call-clock.ts';
import { isCapped, isOverload, isReset } from './failure-streak.ts';
import type { PoolSource } from './pools.ts';
import type { AbortSource } from '../../runtime/plain-abort.ts';

export type GrantedAnswer = Extract<AcquireAnswer, { kind: 'granted' }>;

/** The failure of an acquire call, by the transport or the object. */
interface Failed {
  readonly kind: 'failed';
  readonly overloaded: boolean;
  /** The account has reached its spending cap. */
  readonly capped: boolean;
  /** The object was reset while it had the call. */
  readonly reset: boolean;
}

/** The end of one acquire call. */
export type AcquireEnd = AcquireAnswer | Failed;

/** A grant, and the acquire calls still on their way. One that comes back granted is the lease's new holder. */
export interface GrantedTurn {
  readonly kind: 'granted';
  readonly granted: GrantedAnswer;
  readonly late: readonly Promise<AcquireEnd>[];
}

/** The next thing that happens to a call that waits for its slot. */
export type WaitStep =
  | GrantedTurn
  | Exclude<AcquireEnd, { kind: 'granted' }>
  /** The end of the call that this one superseded; null: it had come before, or there was none. */
  | { readonly kind: 'slice_over'; readonly superseded: AcquireEnd | 'silent' | null }
  | { readonly kind: 'rested' }
  /** The caller has gone. */
  | { readonly kind: 'left' };

const RESTED: WaitStep = { kind: 'rested' };

/** Acquire calls of a ticket that may still be answered: the last one, and those that it superseded. */
export class OpenCalls {
  readonly #pool: PoolSource;
  readonly #after: Schedule;
  readonly #left: Promise<WaitStep>;
  /** The last one first. */
  #open: readonly Promise<AcquireEnd>[] = [];
  /** One of them was lost, and with it perhaps a lease. */
  #isOneLost = false;
  /** All were over when the last one was made, or one before it, and one of them was lost. */
  #isAnew = false;

  constructor(pool: PoolSource, after: Schedule, signal: AbortSource) {
    this.#pool = pool;
    this.#after = after;
    this.#left = untilAborted(signal);
  }

  /**
   * Makes an acquire call, and waits for what happens next: its answer, a grant to one that it superseded, the end of
   * `waitMs`, or the caller's leaving. An object that lives answers a call at once when the next one supersedes it.
   */
  acquire(request: AcquireRequest, waitMs: number): Promise<WaitStep> {
    const [before] = this.#open;
    let superseded: AcquireEnd | 'silent' | null = before === undefined ? null : 'silent';
    const older = this.#grants((one, end) => {
      if (one === before) superseded = end;
    });
    this.#isAnew ||= this.#isOneLost && this.#open.length === 0;
    const call = acquireCall(this.#pool, this.#isAnew ? { ...request, isAnew: true } : request);
    this.#open = [call, ...this.#open];
    const answer = call.then((end) => this.#turnOf(call, end));
    const sliceOver = (): WaitStep => ({ kind: 'slice_over', superseded });
    return this.#first([answer, ...older], waitMs, sliceOver);
  }

  /** Makes no call for a while, which the caller's leaving and a grant to an open one end. */
  rest(ms: number): Promise<WaitStep> {
    return this.#first(this.#grants(), ms, () => RESTED);
  }

  /**
   * Ends the asking. A lease that a call nobody waits for any more may still bring is given back: letting go of it
   * alone would count it as used.
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

  /** Grants to the calls that are open now. Whatever else they are answered is none to the ticket any more. */
  #grants(
    hear: (one: Promise<AcquireEnd>, end: AcquireEnd) => void = () => {},
  ): Promise<WaitStep>[] {
    return this.#open.map(async (one) => {
      const end = await one;
      hear(one, end);
      const turn = this.#turnOf(one, end);
      return turn.kind === 'granted' ? turn : new Promise<never>(() => {});
    });
  }

  /** A grant stays among the open ones: nobody may have waited for it when it came. */
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

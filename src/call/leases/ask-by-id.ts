import type { WaitReason } from '../../core/parts/decision-log.ts';
import { steadyClock, type Schedule, type AbortSource } from '../../runtime/async.ts';
import {
  OpenCalls,
  CALL_AHEAD_MS,
  placeIn,
  type GrantedTurn,
  type WaitStep,
} from '../acquire/open-calls.ts';
import type { PoolSource } from '../acquire/pools.ts';
import { SlotWait, type SlotEnd, type SlotRequest } from '../acquire/acquire-slot.ts';

/** How long the last acquire call of a request may take, which keeps its position. */
const LAST_ASK_MS = 2_000;

/** It is queued without a parked call until it asks again. */
export interface ParkedById {
  readonly kind: 'parked';
  /** null if unknown. */
  readonly position: number | null;
  readonly estimateMs: number | null;
  /** The wait reason. Absent if it is unknown. */
  readonly waitsFor?: WaitReason;
  /** When to ask again. 0 means immediately. */
  readonly askAgainMs: number;
}

export type LeaseByIdAnswer =
  | Exclude<SlotEnd, GrantedTurn>
  | GrantedTurn
  | ParkedById
  | { readonly kind: 'gone' };

interface AskTerms {
  readonly signal: AbortSource;
  readonly after: Schedule;
  /** When the maximum wait ends. */
  readonly until: number;
  /** Latest time at which its request must be answered. */
  readonly parkUntil: number;
}

const NO_ANSWER: ParkedById = { kind: 'parked', position: null, estimateMs: null, askAgainMs: 0 };

/**
 * Asks for a lease that is held by its id, for as long as a request may be parked. Answers are never released, because
 * a repeated request gets the same lease. So a grant whose answer was lost is not lost itself.
 */
export async function askById(
  pool: PoolSource,
  request: SlotRequest,
  { signal, after, until, parkUntil }: AskTerms,
): Promise<LeaseByIdAnswer> {
  const calls = new OpenCalls(pool, after, signal);
  const wait = new SlotWait(request, until, null);
  let restMs = 0;
  while (!signal.aborted) {
    const now = steadyClock.now();
    const leftMs = parkUntil - now;
    if (restMs >= leftMs) return lastAnswer(await keepPlace(calls, wait, now), wait);
    let turn: WaitStep;
    if (restMs > 0) turn = await calls.rest(restMs);
    else {
      const [acquire, waitMs] = wait.nextCall(now);
      const sliceMs = Math.min(acquire.sliceMs, leftMs + CALL_AHEAD_MS);
      turn = await calls.acquire({ ...acquire, sliceMs }, Math.min(waitMs, leftMs));
    }
    const parked = parkedBy(turn);
    if (parked !== null) return parked;
    if (turn.kind === 'gone') return turn;
    const next = wait.after(turn, steadyClock.now());
    if (next.kind !== 'again') return next;
    ({ restMs } = next);
  }
  return { kind: 'left' };
}

/** Replaces a waiter's parked call by one that keeps its position for the next request. */
function keepPlace(calls: OpenCalls, wait: SlotWait, now: number): Promise<WaitStep> {
  const [acquire] = wait.nextCall(now);
  return calls.acquire({ ...acquire, sliceMs: 0, mayAskLater: true }, LAST_ASK_MS);
}

function lastAnswer(turn: WaitStep, wait: SlotWait): LeaseByIdAnswer {
  if (turn.kind === 'pending') {
    return parkedAt(turn);
  }
  if (turn.kind === 'gone') return turn;
  const next = wait.after(turn, steadyClock.now());
  return next.kind === 'again' ? NO_ANSWER : next;
}

/** A deferred waiter need not be parked. */
function parkedBy(turn: WaitStep): ParkedById | null {
  if (turn.kind !== 'pending' || turn.askAgainMs === undefined) return null;
  return parkedAt(turn);
}

function parkedAt(turn: Extract<WaitStep, { kind: 'pending' }>): ParkedById {
  const { askAgainMs = 0 } = turn;
  const { position, estimateMs, waitsFor } = placeIn(turn);
  return {
    kind: 'parked',
    position,
    estimateMs,
    askAgainMs,
    ...(waitsFor !== undefined && { waitsFor }),
  };
}

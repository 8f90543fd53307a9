import type { WaitReason } from '../../core/parts/decision-log.ts';
import type { Schedule } from '../../runtime/call-clock.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import { OpenCalls, type GrantedTurn, type WaitStep } from '../acquire/open-calls.ts';
import type { PoolSource } from '../acquire/pools.ts';
import { CALL_AHEAD_MS, placeIn } from '../acquire/slices.ts';
import { SlotWait, type SlotEnd, type SlotRequest } from '../acquire/slot-wait.ts';
import type { AbortSource } from '../../runtime/plain-abort.ts';

/** How long the last question of a request may take, which keeps its place. */
const LAST_ASK_MS = 2_000;

/** It waits, and nobody is parked for it until it asks again. */
export interface ParkedById {
  readonly kind: 'parked';
  /** Null: not known. */
  readonly position: number | null;
  readonly estimateMs: number | null;
  /** Why it waits. Absent: not known. */
  readonly waitsFor?: WaitReason;
  /** When to ask again; 0: at once. */
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
  /** When it has waited for as long as it may. */
  readonly until: number;
  /** When its request is to be answered at the latest. */
  readonly parkUntil: number;
}

const UNHEARD: ParkedById = { kind: 'parked', position: null, estimateMs: null, askAgainMs: 0 };

/**
 * Asks for a lease that is held by its id, for as long as a request may be parked. No answer is ever given back: who asks again
 * gets the same lease, so a grant that nobody heard of is not lost.
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
    if (restMs >= leftMs) return lastWord(await keepPlace(calls, wait, now), wait);
    let turn: WaitStep;
    if (restMs > 0) turn = await calls.rest(restMs);
    else {
      const [asked, waitMs] = wait.nextCall(now);
      const sliceMs = Math.min(asked.sliceMs, leftMs + CALL_AHEAD_MS);
      turn = await calls.acquire({ ...asked, sliceMs }, Math.min(waitMs, leftMs));
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

/** Takes a waiter's parked call away, and keeps its place for whoever asks next. */
function keepPlace(calls: OpenCalls, wait: SlotWait, now: number): Promise<WaitStep> {
  const [asked] = wait.nextCall(now);
  return calls.acquire({ ...asked, sliceMs: 0, mayAskLater: true }, LAST_ASK_MS);
}

function lastWord(turn: WaitStep, wait: SlotWait): LeaseByIdAnswer {
  if (turn.kind === 'pending') {
    return parkedAt(turn);
  }
  if (turn.kind === 'gone') return turn;
  const next = wait.after(turn, steadyClock.now());
  return next.kind === 'again' ? UNHEARD : next;
}

/** One that is far back need not be parked. */
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

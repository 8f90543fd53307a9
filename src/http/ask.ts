import type { AcquireAnswer, AcquireRequest } from '../contract/group-rpc.ts';
import type { Rejection } from '../core/rejection.ts';
import { onTimer, type Schedule } from '../upstream/call-clock.ts';
import type { PoolSource } from './pools.ts';
import { pause } from './waiting.ts';

/** The first slice, and the shortest. */
const SLICE_MIN_MS = 8_000;
const SLICE_MAX_MS = 30_000;

/** So long before its slice ends the Worker asks again, so that a place in the queue never lapses. */
const ASK_AHEAD_MS = 1_000;

/** Failed asks in a row after which the group counts as out of reach; with the pauses, three seconds. */
const FAILURES_MAX = 7;
const RETRY_PAUSE_MS = 50;

export type Granted = Extract<AcquireAnswer, { kind: 'granted' }>;

export type Asked =
  | {
      readonly kind: 'granted';
      readonly granted: Granted;
      /** Asks still on their way. One that comes back granted is the lease's new holder. */
      readonly late: readonly Promise<AskEnd>[];
    }
  | { readonly kind: 'rejected'; readonly rejection: Rejection }
  /** Route again, no earlier than by that version of the configuration. */
  | { readonly kind: 'moved'; readonly configVersion: number }
  | { readonly kind: 'unavailable' }
  /** The caller has gone; the ticket is cancelled. */
  | { readonly kind: 'left' };

/** How one ask ended: with an answer, or with a failure of the transport or the object. */
export type AskEnd = AcquireAnswer | { readonly kind: 'failed'; readonly overloaded: boolean };

/** What superseded asks said while the current one was waited for. */
interface Heard {
  /** Asks that have come to their end, the current one included. */
  readonly answered: Set<Promise<AskEnd>>;
  estimateMs: number | null;
}

type Turn = AskEnd | { readonly kind: 'slice_over' } | { readonly kind: 'left' };

/**
 * Asks for a slot until there is a definite answer. An ask is parked for a slice at most, and a second
 * before its end the next one supersedes it: a call that is parked in an object that was reset, or in
 * an old instance after a deploy, may never come back, and must not take the caller with it.
 */
export async function askForSlot(
  pool: PoolSource,
  request: Omit<AcquireRequest, 'sliceMs'>,
  signal: AbortSignal,
  after: Schedule = onTimer,
): Promise<Asked> {
  const left = untilAborted(signal);
  let sliceMs = SLICE_MIN_MS;
  let failures = 0;
  let { attempt } = request;
  let superseded: Promise<AskEnd>[] = [];
  while (!signal.aborted) {
    const current = ask(pool, { ...request, attempt, sliceMs });
    const heard: Heard = { answered: new Set(), estimateMs: null };
    const { promise: sliceOver, resolve } = Promise.withResolvers<Turn>();
    const callOff = after(sliceMs - ASK_AHEAD_MS, () => resolve({ kind: 'slice_over' }));
    const turn = await nextTurn(current, superseded, heard, sliceOver, left);
    callOff();
    const open = [current, ...superseded].filter((one) => !heard.answered.has(one));
    switch (turn.kind) {
      case 'granted':
        return { kind: 'granted', granted: turn, late: open };
      case 'rejected':
      case 'moved':
      case 'left':
        disposeLate(open);
        return turn;
      case 'gone':
        // The grant of this attempt was lost on its way, and with it the lease.
        attempt += 1;
        failures += 1;
        superseded = open;
        break;
      case 'pending':
        failures = 0;
        sliceMs = sliceFor(turn.estimateMs);
        superseded = open;
        break;
      case 'slice_over':
        // An object that lives answers an ask at once when the next one supersedes it.
        failures = open[1] !== undefined && open[1] === superseded[0] ? failures + 1 : 0;
        if (heard.estimateMs !== null) sliceMs = sliceFor(heard.estimateMs);
        superseded = open;
        break;
      case 'failed':
        failures += 1;
        superseded = open;
        if (!turn.overloaded && failures < FAILURES_MAX) {
          await Promise.race([pause(RETRY_PAUSE_MS * 2 ** (failures - 1)), left]);
        }
        if (turn.overloaded) failures = FAILURES_MAX;
        break;
    }
    if (failures >= FAILURES_MAX) {
      disposeLate(superseded);
      return { kind: 'unavailable' };
    }
  }
  return { kind: 'left' };
}

/**
 * What happens next: an answer to the current ask, a grant to one that it superseded, the end of the
 * slice, or the caller's leaving. A superseded ask's `pending` only tells the estimate.
 */
function nextTurn(
  current: Promise<AskEnd>,
  superseded: readonly Promise<AskEnd>[],
  heard: Heard,
  sliceOver: Promise<Turn>,
  left: Promise<Turn>,
): Promise<Turn> {
  const mine = current.then((end) => {
    heard.answered.add(current);
    return end;
  });
  const grantsToOlder = superseded.map(async (older): Promise<Turn> => {
    const end = await older;
    heard.answered.add(older);
    if (end.kind === 'pending') heard.estimateMs = end.estimateMs;
    return end.kind === 'granted' ? end : new Promise<never>(() => {});
  });
  return Promise.race([mine, ...grantsToOlder, sliceOver, left]);
}

async function ask(pool: PoolSource, request: AcquireRequest): Promise<AskEnd> {
  try {
    return await pool().acquire(request);
  } catch (error) {
    const overloaded = (error as { overloaded?: boolean }).overloaded === true;
    return { kind: 'failed', overloaded };
  }
}

/** Half the estimate: callers far back ask seldom, and nobody misses a change of the queue for long. */
function sliceFor(estimateMs: number): number {
  return Math.min(SLICE_MAX_MS, Math.max(SLICE_MIN_MS, estimateMs / 2));
}

/** Lets go of a lease that an ask nobody waits for any more may still bring. */
function disposeLate(open: readonly Promise<AskEnd>[]): void {
  for (const one of open) {
    one
      .then((end) => {
        if (end.kind === 'granted') end.lease[Symbol.dispose]();
      })
      .catch(() => {});
  }
}

function untilAborted(signal: AbortSignal): Promise<Turn> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve({ kind: 'left' });
    signal.addEventListener('abort', () => resolve({ kind: 'left' }), { once: true });
  });
}

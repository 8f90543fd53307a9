import type { AcquireAnswer, AcquireRequest } from '../../contract/rpc/group-rpc.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import type { Rejection } from '../../core/words/rejection.ts';
import { onTimer, type Schedule } from '../../runtime/call-clock.ts';
import type { PoolSource } from './pools.ts';
import { pause } from '../../runtime/background.ts';

/** How long the first slice is, and the shortest. */
const SLICE_MIN_MS = 8_000;
const SLICE_MAX_MS = 30_000;

/**
 * How long the slice of a call is that does not want to wait, and the shortest of one whose caller is told its
 * place.
 */
const SLICE_SHORT_MS = 2_000;

/** How long after a ticket's deadline its caller is told at the latest, whatever the object does. */
const DEADLINE_GRACE_MS = 2_000;

/** How long before its slice ends the Worker asks again, so that a place in the queue never lapses. */
const CALL_AHEAD_MS = 1_000;

/** Maximum failed acquire calls in a row before the group counts as out of reach; with the pauses, three seconds. */
const FAILURES_MAX = 7;
const RETRY_PAUSE_MS = 50;

/** Somebody who wants to know where a call stands, so often. */
export interface PlaceListener {
  readonly everyMs: number;
  tell(position: number, estimateMs: number): void;
}

type Standing = Pick<Extract<AcquireAnswer, { kind: 'pending' }>, 'position' | 'estimateMs'>;

export type Granted = Extract<AcquireAnswer, { kind: 'granted' }>;

export type Acquired =
  | {
      readonly kind: 'granted';
      readonly granted: Granted;
      /** Acquire calls still on their way. One that comes back granted is the lease's new holder. */
      readonly late: readonly Promise<AcquireEnd>[];
    }
  | { readonly kind: 'rejected'; readonly rejection: Rejection }
  /** Not now, or not before a pause ends: see `AcquireRequest.isTry` and `holdsNarrower`. */
  | { readonly kind: 'declined'; readonly isPaused: boolean }
  /** Route again, no earlier than by that version of the configuration. */
  | { readonly kind: 'moved'; readonly configVersion: number }
  | { readonly kind: 'unavailable' }
  /** The caller has gone; the ticket is cancelled. */
  | { readonly kind: 'left' };

/** The end of one acquire call: with an answer, or with a failure of the transport or the object. */
export type AcquireEnd = AcquireAnswer | { readonly kind: 'failed'; readonly overloaded: boolean };

/** The answers of superseded calls while the current one was waited for. */
interface Heard {
  /** Acquire calls that have come to their end, the current one included. */
  readonly answered: Set<Promise<AcquireEnd>>;
  pending: Standing | null;
}

type Turn = AcquireEnd | { readonly kind: 'slice_over' } | { readonly kind: 'left' };

/**
 * Acquires a slot, or asks until there is another definite answer. A call is parked for a slice at most, and a second
 * before its end the next one supersedes it: a call that is parked in an object that was reset, or in
 * an old instance after a deploy, may never come back, and must not take the caller with it.
 */
export async function acquireSlot(
  pool: PoolSource,
  request: Omit<AcquireRequest, 'sliceMs'>,
  signal: AbortSignal,
  after: Schedule = onTimer,
  listener: PlaceListener | null = null,
): Promise<Acquired> {
  const left = untilAborted(signal);
  const sliceMaxMs = request.wait ? SLICE_MAX_MS : SLICE_SHORT_MS;
  let sliceMs = sliceFor(0, sliceMaxMs, listener);
  const hear = ({ estimateMs, position }: Standing): void => {
    sliceMs = sliceFor(estimateMs, sliceMaxMs, listener);
    listener?.tell(position, estimateMs);
  };
  let failures = 0;
  let { attempt } = request;
  let superseded: Promise<AcquireEnd>[] = [];
  while (!signal.aborted) {
    const current = acquireCall(pool, { ...request, attempt, sliceMs });
    const heard: Heard = { answered: new Set(), pending: null };
    const { promise: sliceOver, resolve } = Promise.withResolvers<Turn>();
    const callOff = after(sliceMs - CALL_AHEAD_MS, () => resolve({ kind: 'slice_over' }));
    const turn = await nextTurn(current, superseded, heard, sliceOver, left);
    callOff();
    const open = [current, ...superseded].filter((one) => !heard.answered.has(one));
    switch (turn.kind) {
      case 'granted':
        return { kind: 'granted', granted: turn, late: open };
      case 'rejected':
      case 'declined':
      case 'moved':
      case 'left':
        giveBackLate(open);
        return turn;
      case 'gone':
        // The grant of this attempt was lost on its way, and with it the lease.
        attempt += 1;
        failures += 1;
        superseded = open;
        break;
      case 'pending':
        failures = 0;
        hear(turn);
        superseded = open;
        break;
      case 'slice_over':
        // An object that lives answers a call at once when the next one supersedes it.
        failures = open[1] !== undefined && open[1] === superseded[0] ? failures + 1 : 0;
        if (heard.pending !== null) hear(heard.pending);
        superseded = open;
        break;
      case 'failed':
        failures += 1;
        superseded = open;
        if (!turn.overloaded && failures < FAILURES_MAX) {
          await Promise.race([pause(RETRY_PAUSE_MS * 2 ** (failures - 1), after), left]);
        }
        if (turn.overloaded) failures = FAILURES_MAX;
        break;
    }
    // An object that lives has rejected it by then: one that is silent keeps nobody longer.
    const isOver = steadyClock.now() > (request.deadlineAt ?? Infinity) + DEADLINE_GRACE_MS;
    if (failures >= FAILURES_MAX || isOver) {
      giveBackLate(superseded);
      return { kind: 'unavailable' };
    }
  }
  return { kind: 'left' };
}

/**
 * Waits for what happens next: an answer to the current call, a grant to one that it superseded, the end of the
 * slice, or the caller's leaving. A superseded call's `pending` only tells the estimate.
 */
function nextTurn(
  current: Promise<AcquireEnd>,
  superseded: readonly Promise<AcquireEnd>[],
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
    if (end.kind === 'pending') heard.pending = end;
    return end.kind === 'granted' ? end : new Promise<never>(() => {});
  });
  return Promise.race([mine, ...grantsToOlder, sliceOver, left]);
}

async function acquireCall(pool: PoolSource, request: AcquireRequest): Promise<AcquireEnd> {
  try {
    return await pool().acquire({ ...request, sentAt: steadyClock.now() });
  } catch (error) {
    const overloaded = (error as { overloaded?: boolean }).overloaded === true;
    return { kind: 'failed', overloaded };
  }
}

/** Takes half the estimate: callers far back ask seldom, and nobody misses a change of the queue for long. */
function sliceFor(estimateMs: number, sliceMaxMs: number, listener: PlaceListener | null): number {
  const sliceMs = Math.min(sliceMaxMs, Math.max(SLICE_MIN_MS, estimateMs / 2));
  if (listener === null) return sliceMs;
  // Each call brings the newest place, so that each comment can tell it.
  return Math.min(sliceMs, Math.max(SLICE_SHORT_MS, listener.everyMs + CALL_AHEAD_MS));
}

/**
 * Gives back a lease that an acquire call nobody waits for any more may still bring. Letting go of it alone would
 * count it as used.
 */
function giveBackLate(open: readonly Promise<AcquireEnd>[]): void {
  for (const one of open) {
    one
      .then(async (end) => {
        if (end.kind !== 'granted') return;
        const { lease } = end;
        await lease.release('unused', null).finally(() => lease[Symbol.dispose]());
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

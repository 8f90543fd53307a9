import { steadyClock, type Schedule, type AbortSource } from '../../runtime/async.ts';
import type { AcquireAnswer, AcquireRequest } from '../../contract/rpc/group-rpc.ts';
import type { WaitReason } from '../../core/parts/decision-log.ts';
import type { RateRoom } from '../../core/parts/rates.ts';
import type { Rejection } from '../../core/words/outcome.ts';
import { poolName } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';
import type { Moved } from '../results/result.ts';
import {
  OpenCalls,
  CALL_AHEAD_MS,
  placeIn,
  restFor,
  sliceFor,
  type PositionListener,
  type GrantedTurn,
  type WaitStep,
} from './open-calls.ts';
import type { PoolSource } from './pools.ts';
import { FailureStreak, firstRetryMs, overloadedRetryMs, retryMs } from './retry-delays.ts';

/**
 * Acquires the slot of a call in one pool: the polls while it waits, and the bypass of a pool that cannot be reached.
 */

export interface WaitTerms {
  /** Aborts when the caller has left. */
  readonly signal: AbortSource;
  readonly after: Schedule;
  readonly listener: PositionListener | null;
  /** When the maximum wait ends, as far as the Worker knows. */
  readonly until: number;
  /** Lets the call bypass its group if that is allowed, or routes it again. null if neither applies now. */
  readonly bypass: () => Promise<Bypass | Moved | null>;
}

export type Acquired =
  | SlotEnd
  /** The object has been overloaded for so long that the call bypasses its group. */
  | { readonly kind: 'bypassed'; readonly by: Bypass };

/**
 * Acquires a slot, or asks until there is another definite answer. A parked call may never return if its object was
 * reset or it reached an old instance after a deploy. So a call is parked for one slice at most, and the next call
 * supersedes it a second before the slice ends. A deferred waiter is not parked and polls at the interval that it is
 * given.
 */
export async function acquireSlot(
  pool: PoolSource,
  request: SlotRequest,
  { signal, after, listener, until, bypass: bypassNow }: WaitTerms,
): Promise<Acquired> {
  const calls = new OpenCalls(pool, after, signal);
  const wait = new SlotWait(request, until, listener);
  let restMs = 0;
  while (!signal.aborted) {
    const turn = await (restMs > 0
      ? calls.rest(restMs)
      : calls.acquire(...wait.nextCall(steadyClock.now())));
    const next = wait.after(turn, steadyClock.now());
    if (next.kind === 'granted') return next;
    const by = 'mayBypass' in next && next.mayBypass ? await bypassNow() : null;
    if (by !== null) return calls.end(by.kind === 'moved' ? by : { kind: 'bypassed', by });
    if (next.kind !== 'again') return calls.end(next);
    ({ restMs } = next);
  }
  return calls.end({ kind: 'left' });
}

type SlotPending = Extract<AcquireAnswer, { kind: 'pending' }>;
type SliceOver = Extract<WaitStep, { kind: 'slice_over' }>;

/** Latest answer to a caller after its ticket's deadline, even if the object does not respond. */
const DEADLINE_GRACE_MS = 2_000;

/** Maximum consecutive grants that are lost in transit before the group counts as unreachable. */
const LOST_MAX = 7;

/**
 * How long a call must be parked in an object before a reset ends the streak of failures. An object that is reset
 * repeatedly serves between the resets, and one that cannot start fails immediately.
 */
const SERVED_MS = 500;

/** How long an object must be overloaded before calls may bypass their group. */
const BYPASS_AFTER_MS = 2_000;

/** An earlier answer does not end a wait. A call retries immediately after the first of them, and pauses after more. */
const EARLY_MS = 500;

interface MayBypass {
  /** The object has been overloaded long enough for the call to bypass its group, if the group allows that. */
  readonly mayBypass: boolean;
}

interface Overloaded extends MayBypass {
  readonly kind: 'overloaded';
  /** Whether a call of the ticket may have arrived. */
  readonly mayBeKnown: boolean;
}

export type SlotEnd =
  | GrantedTurn
  | {
      readonly kind: 'rejected';
      readonly rejection: Rejection;
      readonly waitedFor?: WaitReason;
      /** Remaining rate limits of the group. Absent if it has none. */
      readonly rates?: readonly RateRoom[];
    }
  /** Not now. See `Ticket.isTry`. */
  | { readonly kind: 'declined'; readonly waitMs: number | null }
  /** The names in the body, or with `of` the session, must be read first. See `AcquireAnswer`. */
  | { readonly kind: 'unread'; readonly of?: 'session' }
  /** The call has to be routed again, by this version of the configuration or a newer one. */
  | { readonly kind: 'moved'; readonly configVersion: number }
  | { readonly kind: 'unavailable' }
  /** The account has reached its spending cap. No object answers until the owner raises it. */
  | { readonly kind: 'capped' }
  /** The object receives too many messages, and the call's maximum wait has ended. */
  | Overloaded
  /** The caller has left, and the ticket is cancelled. */
  | { readonly kind: 'left' };

interface AskAgain extends MayBypass {
  readonly kind: 'again';
  readonly restMs: number;
}

const AT_ONCE: AskAgain = { kind: 'again', restMs: 0, mayBypass: false };

export type SlotRequest = Omit<
  AcquireRequest,
  'sliceMs' | 'mayAskLater' | 'sentAt' | 'clockAheadMs'
>;

/** The wait of one call for its slot: its requests, and the consequence of each event. */
export class SlotWait {
  readonly #request: SlotRequest;
  readonly #until: number;
  readonly #listener: PositionListener | null;
  readonly #streak = new FailureStreak();
  #attempt: number;
  #sliceMs: number;
  #askedAt = 0;
  #hasArrived = false;
  #mayBeKnown = false;
  /** Consecutive early answers that requested another call. */
  #early = 0;
  /** Waiters that were last reported to be ahead. null if none were reported yet. */
  #position: number | null = null;

  /** `until` is when the maximum wait ends, as far as the Worker knows. */
  constructor(request: SlotRequest, until: number, listener: PositionListener | null) {
    this.#request = request;
    this.#until = until;
    this.#listener = listener;
    this.#attempt = request.attempt;
    this.#sliceMs = sliceFor(0, request.ticket.wait, listener);
  }

  /** The acquire call to make at `now`, and how long it may take before the next step. */
  nextCall(now: number): readonly [request: AcquireRequest, waitMs: number] {
    this.#askedAt = now;
    const { aheadMs } = steadyClock;
    const request = {
      ...this.#request,
      attempt: this.#attempt,
      sliceMs: this.#sliceMs,
      // The last call is parked, so that the object reports why the wait failed.
      mayAskLater: now < this.#until - CALL_AHEAD_MS,
      passedUnlimited: this.#hasArrived ? 0 : this.#request.passedUnlimited,
      sentAt: now,
      ...(aheadMs > 0 && { clockAheadMs: aheadMs }),
    };
    return [request, Math.min(this.#sliceMs - CALL_AHEAD_MS, this.#overAt - now)];
  }

  /** Decides what follows from an event at `now`. */
  after(turn: WaitStep, now: number): SlotEnd | AskAgain {
    if (turn.kind !== 'rested') {
      this.#hasArrived ||= turn.kind !== 'failed';
      this.#mayBeKnown ||= turn.kind !== 'failed' || !turn.overloaded;
    }
    switch (turn.kind) {
      case 'granted':
      case 'rejected':
      case 'declined':
      case 'moved':
      case 'unread':
      case 'left':
        return turn;
      case 'rested':
        return AT_ONCE;
      case 'gone':
        // The grant of this attempt was lost in transit, and its lease with it.
        this.#attempt += 1;
        this.#streak.end();
        if (this.#attempt - this.#request.attempt >= LOST_MAX) return { kind: 'unavailable' };
        return this.#unlessOver(this.#askAgain(now), now);
      case 'pending':
        this.#streak.end();
        this.#notePlace(turn);
        return this.#unlessOver(this.#later(turn, now), now);
      case 'slice_over':
        return this.#afterSlice(turn, now);
      case 'failed':
        if (turn.capped) return { kind: 'capped' };
        return turn.overloaded ? this.#afterOverload(now) : this.#afterFailure(turn.reset, now);
    }
  }

  /** A live object has rejected the call by then. A silent one delays its caller no longer. */
  get #overAt(): number {
    return (this.#request.ticket.deadlineAt ?? Infinity) + DEADLINE_GRACE_MS;
  }

  #unlessOver(next: AskAgain, now: number): SlotEnd | AskAgain {
    if (now < this.#overAt) return next;
    return this.#streak.isOverloaded ? this.#overloaded(now) : { kind: 'unavailable' };
  }

  #notePlace(pending: SlotPending): void {
    const place = placeIn(pending);
    this.#position = place.position;
    this.#sliceMs = sliceFor(place.estimateMs, this.#request.ticket.wait, this.#listener);
    this.#listener?.report(place);
  }

  #later({ askAgainMs }: SlotPending, now: number): AskAgain {
    if (askAgainMs === undefined) return this.#askAgain(now);
    return again(restFor(askAgainMs, this.#until - now, this.#listener));
  }

  /**
   * Retries immediately after an early answer, but only once in a row, because nothing else would limit such a loop.
   */
  #askAgain(now: number): AskAgain {
    this.#early = now - this.#askedAt < EARLY_MS ? this.#early + 1 : 0;
    return this.#early > 1 ? again(EARLY_MS + retryMs(this.#early)) : AT_ONCE;
  }

  #afterSlice({ superseded }: SliceOver, now: number): SlotEnd | AskAgain {
    if (superseded === 'silent') {
      this.#streak.noteFailed(now);
      if (this.#streak.isOutOfReach(now)) return { kind: 'unavailable' };
      return this.#unlessOver(AT_ONCE, now);
    }
    if (superseded?.kind === 'failed' && superseded.capped) return { kind: 'capped' };
    if (superseded?.kind === 'failed' && superseded.overloaded) return this.#afterOverload(now);
    this.#streak.end();
    if (superseded?.kind === 'pending') this.#notePlace(superseded);
    return this.#unlessOver(AT_ONCE, now);
  }

  #afterFailure(isReset: boolean, now: number): SlotEnd | AskAgain {
    if (isReset && now - this.#askedAt >= SERVED_MS) this.#streak.end();
    const retries = this.#streak.noteFailed(now);
    if (this.#streak.isOutOfReach(now)) return { kind: 'unavailable' };
    const restMs = retries === 0 ? firstRetryMs(this.#position) : retryMs(retries);
    return this.#unlessOver(again(restMs), now);
  }

  /** Continues to wait if the call may wait, and asks once more when that ends. */
  #afterOverload(now: number): SlotEnd | AskAgain {
    const retries = this.#streak.noteOverloaded(now);
    const { wait, isTry } = this.#request.ticket;
    if (!wait || isTry || now >= this.#until) return this.#overloaded(now);
    const restMs = Math.min(overloadedRetryMs(retries), this.#until - now);
    return { kind: 'again', restMs, mayBypass: this.#mayBypass(now) };
  }

  #overloaded(now: number): SlotEnd {
    return { kind: 'overloaded', mayBypass: this.#mayBypass(now), mayBeKnown: this.#mayBeKnown };
  }

  #mayBypass(now: number): boolean {
    return this.#streak.overloadedMs(now) >= BYPASS_AFTER_MS;
  }
}

function again(restMs: number): AskAgain {
  return { kind: 'again', restMs, mayBypass: false };
}

/**
 * Calls that bypass their group while its object cannot be reached, if the operator allows that. This is the only
 * exception to the limit. Bypasses are counted and limited per isolate, and reported to the object later.
 */
const bypasses = new Map<string, { inFlight: number; unreported: number }>();

/** A request that dies runs no `finally`, so its bypass is counted down when it is collected. */
const lost = new FinalizationRegistry<{ inFlight: number }>((count) => {
  count.inFlight -= 1;
});

/** The permission of a call to run without a slot. */
export interface Bypass {
  readonly kind: 'bypass';
  /** Must be called when the call ends. Later calls have no effect. */
  readonly end: () => void;
}

export function mayBypass({ config }: Placement): boolean {
  return (config?.on_unavailable ?? 'reject') !== 'reject';
}

/** Lets a call bypass its group. null if the group does not allow it, or its maximum of bypasses is in flight. */
export function bypass({ group, partition, config }: Placement): Bypass | null {
  const allowed = config?.on_unavailable ?? 'reject';
  if (allowed === 'reject') return null;
  const name = poolName(group, partition);
  const count = bypasses.get(name) ?? { inFlight: 0, unreported: 0 };
  if (count.inFlight >= allowed.pass_with_limit_each) return null;
  bypasses.set(name, count);
  count.inFlight += 1;
  count.unreported += 1;
  let hasEnded = false;
  const end = (): void => {
    if (!hasEnded) count.inFlight -= 1;
    hasEnded = true;
    lost.unregister(end);
  };
  lost.register(end, count, end);
  return { kind: 'bypass', end };
}

/** Returns the number of bypasses that were not reported to the pool, and counts them as reported. */
export function takeUnreportedBypasses(name: string): number {
  const found = bypasses.get(name);
  if (found === undefined) return 0;
  const { unreported } = found;
  found.unreported = 0;
  if (found.inFlight === 0) bypasses.delete(name);
  return unreported;
}

/** Reverts that, because the pool did not receive the report. */
export function giveBackBypasses(name: string, unreported: number): void {
  if (unreported === 0) return;
  const found = bypasses.get(name) ?? { inFlight: 0, unreported: 0 };
  found.unreported += unreported;
  bypasses.set(name, found);
}

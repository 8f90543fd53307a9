import type { AcquireAnswer, AcquireRequest } from '../../contract/rpc/group-rpc.ts';
import type { WaitReason } from '../../core/parts/decision-log.ts';
import type { RateRoom } from '../../core/parts/rate-room.ts';
import type { Rejection } from '../../core/words/rejection.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import { FailureStreak } from './failure-streak.ts';
import type { GrantedTurn, WaitStep } from './open-calls.ts';
import { firstRetryMs, overloadedRetryMs, retryMs } from './retry-delays.ts';
import { CALL_AHEAD_MS, placeIn, restFor, sliceFor, type PositionListener } from './slices.ts';

type SlotPending = Extract<AcquireAnswer, { kind: 'pending' }>;
type SliceOver = Extract<WaitStep, { kind: 'slice_over' }>;

/** How long after a ticket's deadline its caller is told at the latest, whatever the object does. */
const DEADLINE_GRACE_MS = 2_000;

/** Maximum grants in a row that are lost on their way before the group counts as out of reach. */
const LOST_MAX = 7;

/**
 * How long a call was parked in an object that is reset for the resets before it to be over: one that is reset again
 * and again serves between them, and one that cannot start fails at once.
 */
const SERVED_MS = 500;

/** How long an object is overloaded before calls may bypass their group for it. */
const BYPASS_AFTER_MS = 2_000;

/** An answer that comes sooner is not the end of a wait. A call retries at once after one of them, and pauses after more. */
const EARLY_MS = 500;

interface MayBypass {
  /** The object has been overloaded for so long that the call may bypass its group, where that allows it. */
  readonly mayBypass: boolean;
}

interface Overloaded extends MayBypass {
  readonly kind: 'overloaded';
  /** Whether some call of the ticket may have arrived. */
  readonly mayBeKnown: boolean;
}

/** The end of the asking for a slot. */
export type SlotEnd =
  | GrantedTurn
  | {
      readonly kind: 'rejected';
      readonly rejection: Rejection;
      readonly waitedFor?: WaitReason;
      /** Room in the group's limits of requests and tokens. Absent: it has none. */
      readonly rates?: readonly RateRoom[];
    }
  /** Not now: see `AcquireRequest.isTry`. */
  | { readonly kind: 'declined'; readonly waitMs?: number | null }
  /** The names in the body, or with `of` the session, must be read first. See `AcquireAnswer`. */
  | { readonly kind: 'unread'; readonly of?: 'session' }
  /** Route again, no earlier than by that version of the configuration. */
  | { readonly kind: 'moved'; readonly configVersion: number }
  | { readonly kind: 'unavailable' }
  /** The account has reached its spending cap: no object answers until the owner raises it. */
  | { readonly kind: 'capped' }
  /** The object gets too many messages, and the call can wait no longer. */
  | Overloaded
  /** The caller has gone; the ticket is cancelled. */
  | { readonly kind: 'left' };

/** Ask again, after so long. */
interface AskAgain extends MayBypass {
  readonly kind: 'again';
  readonly restMs: number;
}

const AT_ONCE: AskAgain = { kind: 'again', restMs: 0, mayBypass: false };

export type SlotRequest = Omit<
  AcquireRequest,
  'sliceMs' | 'mayAskLater' | 'sentAt' | 'clockAheadMs'
>;

/** The wait of one call for its slot: what it asks, and what follows from each thing that happens. */
export class SlotWait {
  readonly #asked: SlotRequest;
  readonly #until: number;
  readonly #listener: PositionListener | null;
  readonly #streak = new FailureStreak();
  #attempt: number;
  #sliceMs: number;
  /** When the last acquire call was made. */
  #askedAt = 0;
  #hasArrived = false;
  #mayBeKnown = false;
  /** Early answers in a row that asked for another call. */
  #early = 0;
  /** Waiters that were ahead when it last heard; null: it has not heard yet. */
  #position: number | null = null;

  /** `until`: when it has waited for as long as it may, as far as is known here. */
  constructor(asked: SlotRequest, until: number, listener: PositionListener | null) {
    this.#asked = asked;
    this.#until = until;
    this.#listener = listener;
    this.#attempt = asked.attempt;
    this.#sliceMs = sliceFor(0, asked.wait, listener);
  }

  /** The acquire call that is to be made at `now`, and how long nothing need happen to it. */
  nextCall(now: number): readonly [request: AcquireRequest, waitMs: number] {
    this.#askedAt = now;
    const { aheadMs } = steadyClock;
    const request = {
      ...this.#asked,
      attempt: this.#attempt,
      sliceMs: this.#sliceMs,
      // In the end it is parked, so that the object tells it why it waited in vain.
      mayAskLater: now < this.#until - CALL_AHEAD_MS,
      passedUnlimited: this.#hasArrived ? 0 : this.#asked.passedUnlimited,
      sentAt: now,
      ...(aheadMs > 0 && { clockAheadMs: aheadMs }),
    };
    return [request, Math.min(this.#sliceMs - CALL_AHEAD_MS, this.#overAt - now)];
  }

  /** Decides what follows from a turn of things at `now`. */
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
        // The grant of this attempt was lost on its way, and with it the lease.
        this.#attempt += 1;
        this.#streak.end();
        if (this.#attempt - this.#asked.attempt >= LOST_MAX) return { kind: 'unavailable' };
        return this.#unlessOver(this.#askAgain(now), now);
      case 'pending':
        this.#streak.end();
        this.#hear(turn);
        return this.#unlessOver(this.#later(turn, now), now);
      case 'slice_over':
        return this.#afterSlice(turn, now);
      case 'failed':
        if (turn.capped) return { kind: 'capped' };
        return turn.overloaded ? this.#afterOverload(now) : this.#afterFailure(turn.reset, now);
    }
  }

  /** An object that lives has rejected it by then: one that is silent keeps nobody longer. */
  get #overAt(): number {
    return (this.#asked.deadlineAt ?? Infinity) + DEADLINE_GRACE_MS;
  }

  #unlessOver(next: AskAgain, now: number): SlotEnd | AskAgain {
    if (now < this.#overAt) return next;
    return this.#streak.isOverloaded ? this.#overloaded(now) : { kind: 'unavailable' };
  }

  #hear(pending: SlotPending): void {
    const place = placeIn(pending);
    this.#position = place.position;
    this.#sliceMs = sliceFor(place.estimateMs, this.#asked.wait, this.#listener);
    this.#listener?.report(place);
  }

  #later({ askAgainMs }: SlotPending, now: number): AskAgain {
    if (askAgainMs === undefined) return this.#askAgain(now);
    return again(restFor(askAgainMs, this.#until - now, this.#listener));
  }

  /** Retries at once after an early answer, but only once in a row: nothing else would bound such a loop. */
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
    if (superseded?.kind === 'pending') this.#hear(superseded);
    return this.#unlessOver(AT_ONCE, now);
  }

  #afterFailure(isReset: boolean, now: number): SlotEnd | AskAgain {
    if (isReset && now - this.#askedAt >= SERVED_MS) this.#streak.end();
    const retries = this.#streak.noteFailed(now);
    if (this.#streak.isOutOfReach(now)) return { kind: 'unavailable' };
    const restMs = retries === 0 ? firstRetryMs(this.#position) : retryMs(retries);
    return this.#unlessOver(again(restMs), now);
  }

  /** Goes on waiting where it may wait, and asks a last time when that is over. */
  #afterOverload(now: number): SlotEnd | AskAgain {
    const retries = this.#streak.noteOverloaded(now);
    const { wait, isTry = false } = this.#asked;
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

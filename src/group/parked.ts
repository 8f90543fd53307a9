import { BoundedMap, BoundedSet } from '../core/parts/bounded-map.ts';
import type {
  AcquireAnswer,
  ReplacedInstance,
  ResumeAnswer,
  RenewAnswer,
} from '../contract/rpc/group-rpc.ts';
import type { Effect } from '../core/events.ts';
import type { QueuePosition } from '../core/parts/decision-log.ts';
import { attemptOf, ticketOf, type LeaseId, type TicketId } from '../core/words/ids.ts';
import type { Rejection } from '../core/words/outcome.ts';
import { RETRY_AFTER_MAX_MS, RENEW_EVERY_MS } from '../core/words/settings.ts';
import type { Env } from '../env.ts';

/** Calls and renewals that wait in memory for their answer, and how many may. */

type ParkedAnswer = AcquireAnswer | ResumeAnswer;
type Resolve = (answer: ParkedAnswer) => void;

/** An effect that answers a ticket's parked call and needs nothing else. */
type AnsweringEffect = Extract<
  Effect,
  { kind: 'pending' | 'reject' | 'declined' | 'gone' | 'moved' | 'unread' }
>;

type PendingEffect = Extract<Effect, { kind: 'pending' }>;

/** An end of a wait that must be reported to the caller. */
type WaitEnd = Extract<AnsweringEffect, { kind: 'reject' | 'declined' | 'moved' }>;

type RefusedRates = Pick<Extract<AcquireAnswer, { kind: 'rejected' }>, 'rates'>;

const CANCELLED: Rejection = { reason: 'cancelled', retryAfterMs: null };

/**
 * The parked acquire or resume call of each ticket, and its answers. If no call is parked when a wait ends, the caller
 * receives the result with its next request.
 */
export class ParkedAcquires {
  readonly #configVersion: () => number;
  readonly #rates: () => RefusedRates;
  readonly #nextAttachment: () => number;
  readonly #parked = new Map<TicketId, Resolve>();
  /** Waiters that an operator removed. Their callers may still ask again. */
  readonly #dismissed: BoundedSet<TicketId>;
  /** Ends of waits that have not been reported yet. */
  readonly #missed: BoundedMap<TicketId, WaitEnd>;
  /** The next attempt of each ticket whose lease was returned unused, so that the ticket may wait again. */
  readonly #nextAttempts: BoundedMap<TicketId, number>;

  /** @param max maximum waiters. As many ends may be unreported. */
  constructor(
    configVersion: () => number,
    rates: () => RefusedRates,
    nextAttachment: () => number,
    max: number,
  ) {
    this.#configVersion = configVersion;
    this.#rates = rates;
    this.#nextAttachment = nextAttachment;
    this.#dismissed = new BoundedSet(max);
    this.#missed = new BoundedMap(max);
    this.#nextAttempts = new BoundedMap(max);
  }

  /** The call that is parked for a ticket now. A superseding call answers it. */
  current(id: TicketId): Resolve | undefined {
    return this.#parked.get(id);
  }

  park(id: TicketId, resolve: Resolve): void {
    this.#parked.set(id, resolve);
  }

  /** Removes the call of a ticket, to be answered with its lease. */
  take(id: TicketId): Resolve | undefined {
    const parked = this.#parked.get(id);
    this.#parked.delete(id);
    return parked;
  }

  answer(effect: AnsweringEffect): void {
    const parked = this.take(effect.ticketId);
    if (parked !== undefined) return parked(this.#answerTo(effect));
    // A lease that is gone is reported at every request.
    if (effect.kind !== 'pending' && effect.kind !== 'gone' && effect.kind !== 'unread') {
      this.#missed.set(effect.ticketId, effect);
    }
  }

  /** Removes and returns how the wait of a ticket ended while no call was parked, or undefined if it did not. */
  takeMissed(id: TicketId): AcquireAnswer | undefined {
    const missed = this.#missed.get(id);
    if (missed === undefined) return undefined;
    this.#missed.delete(id);
    return this.#ending(missed);
  }

  /** Makes acquire calls of this ticket receive `cancelled` instead of `gone` from now on. */
  dismiss(id: TicketId): void {
    this.#dismissed.add(id);
  }

  /**
   * Records that a lease was returned unused. Its ticket continues with the next attempt, whichever request asks for
   * it.
   */
  noteReturned(id: LeaseId): void {
    this.#nextAttempts.set(ticketOf(id), attemptOf(id) + 1);
  }

  /** Returns the attempt of a ticket here, which is never before the requested one. */
  attemptOf(id: TicketId, requested: number): number {
    return Math.max(requested, this.#nextAttempts.get(id) ?? 0);
  }

  pending(at: QueuePosition & Pick<PendingEffect, 'askAgainMs'>): AcquireAnswer {
    const { position, estimateMs, waitsFor, quietMs, askAgainMs } = at;
    return {
      kind: 'pending',
      position,
      estimateMs: estimateMs ?? RETRY_AFTER_MAX_MS,
      ...(estimateMs === null && { isUnforeseen: true as const }),
      ...(waitsFor !== null && { waitsFor }),
      ...(quietMs !== null && { quietMs }),
      ...(askAgainMs !== null && { askAgainMs }),
      configVersion: this.#configVersion(),
    };
  }

  moved(): AcquireAnswer {
    return { kind: 'moved', configVersion: this.#configVersion() };
  }

  gone(): ReplacedInstance {
    return { kind: 'gone', attachment: this.#nextAttachment() };
  }

  #answerTo(effect: AnsweringEffect): ParkedAnswer {
    switch (effect.kind) {
      case 'pending':
        return this.pending(effect);
      case 'unread':
        return {
          kind: 'unread',
          configVersion: this.#configVersion(),
          ...(effect.of !== undefined && { of: effect.of }),
        };
      case 'gone':
        return this.#dismissed.has(effect.ticketId) ? this.#rejected(CANCELLED) : this.gone();
      case 'reject':
      case 'declined':
      case 'moved':
        return this.#ending(effect);
    }
  }

  #ending(effect: WaitEnd): AcquireAnswer {
    switch (effect.kind) {
      case 'reject': {
        const { rejection, waitedFor } = effect;
        const waited = waitedFor === undefined ? {} : { waitedFor };
        return { ...this.#rejected(rejection), ...waited };
      }
      case 'declined':
        return {
          kind: 'declined',
          waitMs: effect.waitMs,
          configVersion: this.#configVersion(),
        };
      case 'moved':
        return this.moved();
    }
  }

  #rejected(rejection: Rejection): AcquireAnswer {
    return { kind: 'rejected', rejection, configVersion: this.#configVersion(), ...this.#rates() };
  }
}

interface ParkedRenewal {
  readonly dueAt: number;
  readonly answer: (answer: RenewAnswer) => void;
}

/**
 * Parks renewals of leases or prefetched slots until the next one is due. If a slot is revoked, its holder is notified
 * at once through the parked call. Otherwise the answer is a time signal, so holders need no timer.
 */
export class Renewals {
  readonly #everyMs: number;
  /** In due order, because all are parked for the same time. */
  readonly #parked = new Map<LeaseId, ParkedRenewal>();

  constructor(everyMs = RENEW_EVERY_MS) {
    this.#everyMs = everyMs;
  }

  park(leaseId: LeaseId, now: number): Promise<RenewAnswer> {
    this.answer(leaseId, 'ok');
    return new Promise((resolve) => {
      this.#parked.set(leaseId, { dueAt: now + this.#everyMs, answer: resolve });
    });
  }

  answer(leaseId: LeaseId, answer: RenewAnswer): void {
    const parked = this.#parked.get(leaseId);
    if (parked === undefined) return;
    this.#parked.delete(leaseId);
    parked.answer(answer);
  }

  answerDue(now: number): void {
    for (const [leaseId, parked] of this.#parked) {
      if (parked.dueAt > now) break;
      this.answer(leaseId, 'ok');
    }
  }

  nextDueAt(): number {
    const [first] = this.#parked.values();
    return first?.dueAt ?? Infinity;
  }
}

/** Maximum waiters of a pool if Headgate is self-hosted. */
export const WAITERS_MAX = 5_000;

/** Maximum on Cloudflare, where an isolate has 128 MB. `design/performance.md` lists the memory of a parked call. */
export const WAITERS_MAX_CLOUDFLARE = 2_000;

/** Returns the maximum waiters of a pool, regardless of the configuration. */
export function waitersMax({ BOOT_ID: bootId }: Pick<Env, 'BOOT_ID'>): number {
  return bootId === undefined ? WAITERS_MAX_CLOUDFLARE : WAITERS_MAX;
}

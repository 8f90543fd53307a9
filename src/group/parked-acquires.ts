import { BoundedSet } from '../core/parts/bounded-map.ts';
import type { AcquireAnswer, Gone, ResumeAnswer } from '../contract/rpc/group-rpc.ts';
import type { Effect } from '../core/events.ts';
import type { TicketId } from '../core/words/ids.ts';
import type { Rejection } from '../core/words/rejection.ts';

type Answer = AcquireAnswer | ResumeAnswer;
type Resolve = (answer: Answer) => void;

/** An effect that answers a ticket's parked call and needs nothing else. */
export type AnsweringEffect = Extract<
  Effect,
  { kind: 'pending' | 'reject' | 'declined' | 'gone' | 'moved' }
>;

const CANCELLED: Rejection = { reason: 'cancelled', retryAfterMs: null };

/** Maximum of waiters that an operator took out and whose callers may still be on their way back. */
const DISMISSED_MAX = 1_000;

/** The parked acquire (or resume) call of each ticket, and what it is answered. */
export class ParkedAcquires {
  readonly #configVersion: () => number;
  readonly #nextAttachment: () => number;
  readonly #parked = new Map<TicketId, Resolve>();
  /** The oldest first. */
  readonly #dismissed = new BoundedSet<TicketId>(DISMISSED_MAX);

  constructor(configVersion: () => number, nextAttachment: () => number) {
    this.#configVersion = configVersion;
    this.#nextAttachment = nextAttachment;
  }

  /** The call that is parked for a ticket now, for the next one to answer when it has superseded it. */
  current(id: TicketId): Resolve | undefined {
    return this.#parked.get(id);
  }

  /** Parks a call in place of an earlier one. */
  park(id: TicketId, resolve: Resolve): void {
    this.#parked.set(id, resolve);
  }

  /** Takes out the call of a ticket, to be answered with its lease. */
  take(id: TicketId): Resolve | undefined {
    const parked = this.#parked.get(id);
    this.#parked.delete(id);
    return parked;
  }

  answer(effect: AnsweringEffect): void {
    this.take(effect.ticketId)?.(this.#answerTo(effect));
  }

  /** Has acquire calls of this ticket that would hear `gone` hear from now on that it was cancelled. */
  dismiss(id: TicketId): void {
    this.#dismissed.add(id);
  }

  pending(at: { readonly position: number; readonly estimateMs: number }): AcquireAnswer {
    const { position, estimateMs } = at;
    return { kind: 'pending', position, estimateMs, configVersion: this.#configVersion() };
  }

  moved(): AcquireAnswer {
    return { kind: 'moved', configVersion: this.#configVersion() };
  }

  gone(): Gone {
    return { kind: 'gone', attachment: this.#nextAttachment() };
  }

  #answerTo(effect: AnsweringEffect): Answer {
    const configVersion = this.#configVersion();
    switch (effect.kind) {
      case 'pending':
        return this.pending(effect);
      case 'reject':
        return { kind: 'rejected', rejection: effect.rejection, configVersion };
      case 'declined':
        return { kind: 'declined', isPaused: effect.isPaused, configVersion };
      case 'moved':
        return this.moved();
      case 'gone':
        if (!this.#dismissed.has(effect.ticketId)) return this.gone();
        return { kind: 'rejected', rejection: CANCELLED, configVersion };
    }
  }
}

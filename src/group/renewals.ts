import type { RenewAnswer } from '../contract/rpc/group-rpc.ts';
import type { LeaseId } from '../core/words/ids.ts';
import { RENEW_EVERY_MS } from '../core/words/settings.ts';

interface ParkedRenewal {
  readonly dueAt: number;
  readonly answer: (answer: RenewAnswer) => void;
}

/**
 * The renewals, of leases or of loans, that are parked until the next one is due. A holder learns at once through its own when
 * its lease is taken away; otherwise the answer is a time signal, so holders need no timer.
 */
export class Renewals {
  readonly #everyMs: number;
  /** In the order in which they are due: all are parked for the same time. */
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

  /** Answers everything that is due. */
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

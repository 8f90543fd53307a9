import type { RenewAnswer } from '../contract/rpc/group-rpc.ts';
import type { LeaseId } from '../core/words/ids.ts';
import { RENEW_EVERY_MS } from '../core/words/settings.ts';

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

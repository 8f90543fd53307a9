/** One time that a call asks its pools. */
export interface Round {
  readonly ticketId: string;
  /** The first attempt: those of earlier rounds may have ended. */
  readonly attempt: number;
}

/** Attempts that `acquireSlot` may use up before the next round. */
const ATTEMPTS_PER_ROUND = 10;

/**
 * The ids by which a call asks its pools: one ticket for as long as none of them was told that it is cancelled. That
 * pool would answer it `gone` from then on, and the call may go on all the same: elsewhere, by a newer configuration,
 * or once more in order. Its place does not go by the id.
 */
export class Rounds {
  #ticketId: string | null = null;
  #begun = 0;

  begin(): Round {
    this.#ticketId ??= crypto.randomUUID();
    const attempt = this.#begun * ATTEMPTS_PER_ROUND + 1;
    this.#begun += 1;
    return { ticketId: this.#ticketId, attempt };
  }

  /** Has the next round begin with a new ticket. */
  noteCancelled(): void {
    this.#ticketId = null;
    this.#begun = 0;
  }
}

export interface Round {
  readonly ticketId: string;
  /** The first attempt number of the round. Attempts of earlier rounds may have ended. */
  readonly attempt: number;
}

const ATTEMPTS_PER_ROUND = 10;

/**
 * The ids with which a call asks its pools. It keeps one ticket until a pool was sent a cancellation. That pool answers
 * the ticket with `gone` from then on, although the call may continue elsewhere, by a newer configuration, or in
 * another round. Its position does not depend on the id.
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

  /** Starts the next round with a new ticket. */
  noteCancelled(): void {
    this.#ticketId = null;
    this.#begun = 0;
  }
}

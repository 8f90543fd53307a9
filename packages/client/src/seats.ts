import type { LeaseRequest } from './request.ts';
import { HeadgateError } from './errors.ts';
import { orAborted, within } from './waits.ts';

const RANK = { high: 1, normal: 2, low: 3 } as const;

/** Goes before all others: one that has been in the queue has its age there. */
const RANK_WITH_TICKET = 0;

interface SeatWaiter {
  readonly rank: number;
  readonly enter: () => void;
}

/**
 * Bounds how many wait in one queue of Headgate at once: each holds a connection, of which browsers and Workers have six,
 * and with all of them waiting no lease could be renewed or given back. The others wait here, better lanes first.
 */
export class Seats {
  #free: number;
  readonly #waiting: SeatWaiter[] = [];

  constructor(seats: number) {
    this.#free = seats;
  }

  /** Waits for a seat, for as long as the request may; returns how to leave it. */
  async take({ lane = 'normal', ticket, maxWaitMs, signal }: LeaseRequest): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else {
      const rank = ticket === undefined ? RANK[lane] : RANK_WITH_TICKET;
      const turn = new Promise<void>((enter) => this.#queue({ rank, enter }));
      await orAborted(within(turn, maxWaitMs ?? Infinity, tooLate), signal).catch(
        (error: unknown) => {
          // Its turn comes all the same, and goes to the next one then.
          turn.then(() => this.#leave()).catch(() => undefined);
          throw error;
        },
      );
    }
    return () => this.#leave();
  }

  #queue(mine: SeatWaiter): void {
    const behind = this.#waiting.findIndex(({ rank }) => rank > mine.rank);
    this.#waiting.splice(behind === -1 ? this.#waiting.length : behind, 0, mine);
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next.enter();
  }
}

const tooLate = (): Error =>
  new HeadgateError('queue_timeout', 'No slot within the time: more wait here than ask at once.');

/** Seats of one queue: as many as a server wants to have open, or a third of what the others have. */
export function seatsHere(): number {
  const { process, document, navigator } = globalThis as {
    process?: { versions?: { node?: string } };
    document?: unknown;
    navigator?: { userAgent?: string };
  };
  const isServer =
    process?.versions?.node !== undefined &&
    document === undefined &&
    navigator?.userAgent !== 'Cloudflare-Workers';
  return isServer ? 100 : 2;
}

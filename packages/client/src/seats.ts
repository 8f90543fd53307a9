import type { LeaseRequest } from './request.ts';
import { HeadgateError } from './errors.ts';
import { orAborted, within } from './waits.ts';

const RANK = { high: 1, normal: 2, low: 3 } as const;

/** Requests with a ticket come first, because they keep their age in the queue. */
const RANK_WITH_TICKET = 0;

interface SeatWaiter {
  readonly rank: number;
  readonly enter: () => void;
}

/**
 * Limits how many requests wait in one queue of Headgate at once. Each holds a connection. Browsers and Workers have
 * only six, and if all of them wait, no lease can be renewed or released. Further requests wait in this process, by
 * lane.
 */
export class Seats {
  #free: number;
  readonly #waiting: SeatWaiter[] = [];

  constructor(seats: number) {
    this.#free = seats;
  }

  /** Waits for a seat, at most for `maxWaitMs`. Returns a function that frees it. */
  async take({ lane = 'normal', ticket, maxWaitMs, signal }: LeaseRequest): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else {
      const rank = ticket === undefined ? RANK[lane] : RANK_WITH_TICKET;
      const turn = new Promise<void>((enter) => this.#queue({ rank, enter }));
      await orAborted(within(turn, maxWaitMs ?? Infinity, tooLate), signal).catch(
        (error: unknown) => {
          // The seat is assigned anyway. It is freed then for the next waiter.
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
  new HeadgateError(
    'queue_timeout',
    'No slot within `maxWaitMs`: too many requests of this process wait for the same queue.',
  );

/** Seats for each queue: 100 on a server, or 2 of the 6 connections of a browser or Worker. */
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

import { orAborted } from './waits.ts';

const RANK = { high: 0, normal: 1, low: 2 } as const;

type Lane = keyof typeof RANK;

interface Waiting {
  readonly rank: number;
  readonly enter: () => void;
}

/**
 * Bounds how many requests wait at Headgate at once: each holds a connection, of which browsers and Workers have six, and
 * with all of them waiting no lease could be renewed or given back. The others wait here, better lanes first.
 */
export class Seats {
  #free: number;
  readonly #waiting: Waiting[] = [];

  constructor(seats: number) {
    this.#free = seats;
  }

  /** Waits for a seat; returns how to leave it. */
  async take(lane: Lane = 'normal', signal?: AbortSignal): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else {
      const turn = new Promise<void>((enter) => this.#queue({ rank: RANK[lane], enter }));
      await orAborted(turn, signal).catch((error: unknown) => {
        // Its turn comes all the same, and goes to the next one then.
        turn.then(() => this.#leave()).catch(() => undefined);
        throw error;
      });
    }
    let left = false;
    return () => {
      if (!left) this.#leave();
      left = true;
    };
  }

  #queue(mine: Waiting): void {
    const behind = this.#waiting.findIndex(({ rank }) => rank > mine.rank);
    this.#waiting.splice(behind === -1 ? this.#waiting.length : behind, 0, mine);
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next.enter();
  }
}

/** Most requests that wait at once: as many as a server wants to have open, or half of what the others have. */
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
  return isServer ? 100 : 3;
}

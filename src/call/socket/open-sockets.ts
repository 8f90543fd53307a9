import type { Schedule } from '../../runtime/call-clock.ts';
import type { CutReason } from '../../core/words/cut.ts';

/** How often an open WebSocket looks whether it may go on: as soon as a change has come to every isolate. */
const LOOK_MS = 5_000;

/** A WebSocket that is open. */
interface OpenSocket {
  readonly cut: (reason: CutReason) => void;
  /** Why it must end; null: it may go on. */
  readonly whyEnd: () => Promise<CutReason | null>;
  /** Whether nothing is under way on it. Absent: something is for as long as it is open. */
  readonly isAtRest?: () => boolean;
}

/** How often one that is to end at rest looks whether it is. */
const REST_LOOK_MS = 100;

/** The WebSockets of this isolate. What a call has long behind it, a change of its key or its group, must reach them too. */
class OpenSockets {
  readonly #stops = new Set<() => void>();
  readonly #stopsAtRest = new Set<() => void>();

  /** Watches a WebSocket until the returned function is called. */
  watch({ cut, whyEnd, isAtRest }: OpenSocket, after: Schedule): () => void {
    let isOver = false;
    const look = async (): Promise<void> => {
      const reason = await whyEnd().catch(() => null);
      if (isOver) return;
      // A running turn is a call, which ends before its connection is replaced.
      const isLater = reason === 'restart' && isAtRest?.() === false;
      if (reason === null || isLater) after(LOOK_MS, () => void look());
      else cut(reason);
    };
    const lookForRest = (): void => {
      if (isOver) return;
      if (isAtRest?.() === true) cut('restart');
      else after(REST_LOOK_MS, lookForRest);
    };
    const forget = [
      hearFrom(this.#stops, () => cut('restart')),
      hearFrom(this.#stopsAtRest, lookForRest),
    ];
    after(LOOK_MS, () => void look());
    return () => {
      isOver = true;
      for (const end of forget) end();
    };
  }

  /** Ends those on which nothing is under way, and others once that is over, because the process is to end. */
  stopAtRest(): void {
    for (const report of this.#stopsAtRest) report();
  }

  /** Ends all of them, because the process ends. */
  stop(): void {
    for (const report of this.#stops) report();
  }
}

/** Has something done once, when that is told. The answer takes it back. */
function hearFrom(reported: Set<() => void>, then: () => void): () => void {
  // A promise, because a socket belongs to another request than the one that tells of the end.
  const { promise, resolve } = Promise.withResolvers<void>();
  promise.then(then).catch(() => {});
  reported.add(resolve);
  return () => reported.delete(resolve);
}

export const openSockets = new OpenSockets();

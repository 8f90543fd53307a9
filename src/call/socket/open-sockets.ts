import type { Schedule } from '../../runtime/call-clock.ts';
import type { CutReason } from '../../core/words/cut.ts';

/** How often an open WebSocket looks whether it may go on: as soon as a change has come to every isolate. */
const LOOK_MS = 5_000;

/** A WebSocket that is open. */
interface OpenSocket {
  readonly cut: (reason: CutReason) => void;
  /** Why it must end; null: it may go on. */
  readonly whyEnd: () => Promise<CutReason | null>;
}

/** The WebSockets of this isolate. What a call has long behind it, a change of its key or its group, must reach them too. */
class OpenSockets {
  readonly #stops = new Set<() => void>();

  /** Watches a WebSocket until the returned function is called. */
  watch({ cut, whyEnd }: OpenSocket, after: Schedule): () => void {
    // A promise, because a socket belongs to another request than the one that tells of the end.
    const { promise, resolve } = Promise.withResolvers<void>();
    promise.then(() => cut('restart')).catch(() => {});
    this.#stops.add(resolve);
    let isOver = false;
    const look = async (): Promise<void> => {
      const reason = await whyEnd().catch(() => null);
      if (isOver) return;
      if (reason === null) after(LOOK_MS, () => void look());
      else cut(reason);
    };
    after(LOOK_MS, () => void look());
    return () => {
      isOver = true;
      this.#stops.delete(resolve);
    };
  }

  /** Ends all of them, because the process ends. */
  stop(): void {
    for (const tell of this.#stops) tell();
  }
}

export const openSockets = new OpenSockets();

import type { Schedule, Background } from '../../runtime/async.ts';
import type { CutReason } from '../../core/words/outcome.ts';

/** How often an open WebSocket is checked. By then a change has reached every isolate. */
const LOOK_MS = 5_000;

interface OpenSocket {
  readonly cut: (reason: CutReason) => void;
  /** Why it must end. null if it may stay open. */
  readonly whyEnd: () => Promise<CutReason | null>;
  /** Whether it is idle. Absent if it is in use for as long as it is open. */
  readonly isAtRest?: () => boolean;
}

/** How often a WebSocket that has to end once idle is checked. */
const REST_LOOK_MS = 100;

/** The WebSockets of this isolate. Changes of a key or a group must reach them too, long after their upgrade. */
class OpenSockets {
  readonly #stops = new Set<() => void>();
  readonly #stopsAtRest = new Set<() => void>();

  /** Watches a WebSocket until the returned function is called. */
  watch({ cut, whyEnd, isAtRest }: OpenSocket, after: Schedule): () => void {
    let hasEnded = false;
    const look = async (): Promise<void> => {
      const reason = await whyEnd().catch(() => null);
      if (hasEnded) return;
      // A running turn is a call, which ends before its connection is replaced.
      const isLater = reason === 'restart' && isAtRest?.() === false;
      if (reason === null || isLater) after(LOOK_MS, () => void look());
      else cut(reason);
    };
    const lookForRest = (): void => {
      if (hasEnded) return;
      if (isAtRest?.() === true) cut('restart');
      else after(REST_LOOK_MS, lookForRest);
    };
    const forget = [
      onSignal(this.#stops, () => cut('restart')),
      onSignal(this.#stopsAtRest, lookForRest),
    ];
    after(LOOK_MS, () => void look());
    return () => {
      hasEnded = true;
      for (const end of forget) end();
    };
  }

  /** Ends idle WebSockets now and others once they are idle, because the process is about to end. */
  stopAtRest(): void {
    for (const report of this.#stopsAtRest) report();
  }

  /** Ends all of them, because the process ends. */
  stop(): void {
    for (const report of this.#stops) report();
  }
}

/** Runs a function once on a signal. The returned function cancels that. */
function onSignal(reported: Set<() => void>, then: () => void): () => void {
  // A promise, because a socket belongs to another request than the one that signals the end.
  const { promise, resolve } = Promise.withResolvers<void>();
  promise.then(then).catch(() => {});
  reported.add(resolve);
  return () => reported.delete(resolve);
}

export const openSockets = new OpenSockets();

/** How long a caller may take to read what was sent before the close. */
const UNREAD_MS = 10_000;

/** The method of a request's context that ends it with all its resources, if the runtime has it. */
interface Abortable {
  abort?(reason: Error): void;
}

/**
 * Breaks the connection of a caller that does not read a closed WebSocket to its end. The close is queued behind the
 * unread messages, which would stay in memory until the caller leaves.
 */
export function dropWhenUnread(
  pipe: { readonly unsentBytes: number },
  ctx: Background & Abortable,
  after: Schedule,
): void {
  if (pipe.unsentBytes === 0) return;
  after(UNREAD_MS, () => {
    if (pipe.unsentBytes > 0) ctx.abort?.(new Error('the caller does not read'));
  });
}

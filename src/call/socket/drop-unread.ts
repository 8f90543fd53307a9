import type { Schedule } from '../../runtime/clock.ts';
import type { Background } from '../../runtime/async.ts';

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

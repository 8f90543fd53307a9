import type { Schedule } from '../../runtime/call-clock.ts';
import type { Background } from '../../runtime/background.ts';

/** How long a caller may take to read what was sent before the close. */
const UNREAD_MS = 10_000;

/** The part of a request's context that ends it with everything that it holds, where the runtime has that. */
interface Abortable {
  abort?(reason: Error): void;
}

/**
 * Breaks the connection of a caller that does not read to the end of a WebSocket that was closed: the close stands behind
 * what it does not take, and all of that would stay in memory until it goes by itself.
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

import type { GroupView } from './status.ts';

/**
 * How long the oldest queued call has waited. It goes on while nothing changes, of which the feed sends no word.
 *
 * @param toldAt when the feed told of the group last, in epoch milliseconds; undefined: just now
 */
export function oldestWaitMs(
  { queued, oldest_wait_ms: toldMs }: Pick<GroupView, 'queued' | 'oldest_wait_ms'>,
  toldAt: number | undefined,
  nowMs: number,
): number {
  return queued === 0 ? 0 : toldMs + Math.max(0, nowMs - (toldAt ?? nowMs));
}

import type { GroupView } from './status.ts';

/**
 * How long the oldest queued call has waited. It goes on while nothing changes, of which the feed sends no word.
 *
 * @param reportedAt when the feed told of the group last, in epoch milliseconds; undefined: just now
 */
export function oldestWaitMs(
  { queued, oldest_wait_ms: reportedMs }: Pick<GroupView, 'queued' | 'oldest_wait_ms'>,
  reportedAt: number | undefined,
  nowMs: number,
): number {
  return queued === 0 ? 0 : reportedMs + Math.max(0, nowMs - (reportedAt ?? nowMs));
}

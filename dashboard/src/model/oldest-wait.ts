import type { GroupView } from './status.ts';

/**
 * Wait of the oldest queued call. It grows while nothing changes, and the feed reports changes only.
 *
 * @param reportedAt when the feed last reported the group, in epoch milliseconds. undefined means now.
 */
export function oldestWaitMs(
  { queued, oldest_wait_ms: reportedMs }: Pick<GroupView, 'queued' | 'oldest_wait_ms'>,
  reportedAt: number | undefined,
  nowMs: number,
): number {
  return queued === 0 ? 0 : reportedMs + Math.max(0, nowMs - (reportedAt ?? nowMs));
}

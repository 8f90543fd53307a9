import { LANES } from '../../../src/core/words/ticket.ts';
import { count, duration } from '../format.ts';
import type { Slots } from './slots.ts';
import { waitWords } from '../../../src/contract/status-words.ts';
import { scopeWords } from './scope-words.ts';
import type { GroupView, WaiterView } from './status.ts';

type QueueGauges = Pick<GroupView, 'queued' | 'queued_by_lane' | 'oldest_wait_ms'>;

/** Describes the picture of a pool, for screen readers. */
export function sentenceOf(slots: Slots, queue: QueueGauges): string {
  const parts = [`${slotsInWords(slots)} in use`];
  if (slots.cooling > 0) parts.push(`${slots.cooling} cooling down`);
  if (slots.unclaimed > 0) parts.push(`${slots.unclaimed} orphaned`);
  if (slots.lent > 0) parts.push(`${slots.lent} prefetched`);
  if (slots.beyond > 0) parts.push(`${slots.beyond} above the learned limit`);
  parts.push(queueInWords(queue));
  return `${parts.join(', ')}.`;
}

/** Formats slots in use, such as `5 of 5 slots`. */
export function slotsInWords(slots: Slots): string {
  const { capacity } = slots;
  if (capacity === null) return `${count(slots.inUse)} slots, no limit`;
  return `${count(slots.inUse)} of ${count(capacity)} ${capacity === 1 ? 'slot' : 'slots'}`;
}

export const PREFETCHED =
  'prefetched by a Worker, with no call on it: returned when another call needs it';

export function orphanedInWords(until: string | null): string {
  const at = until === null ? '' : ` by ${new Date(until).toLocaleTimeString('en-GB')}`;
  return `orphaned: granted before the last restart of this pool; free${at} unless its call reclaims it`;
}

function queueInWords({ queued, queued_by_lane, oldest_wait_ms }: QueueGauges): string {
  if (queued === 0) return 'no queued calls';
  const lanes = LANES.filter((lane) => queued_by_lane[lane] > 0).map(
    (lane) => `${queued_by_lane[lane]} ${lane}`,
  );
  return `${queued} queued (${lanes.join(', ')}), the oldest for ${duration(oldest_wait_ms)}`;
}

/** Shorter estimates are shown as `soon`. */
const SOON_MS = 1_000;

/** Grace after an estimate, because news of a grant takes time to arrive. */
const OVERDUE_MS = 2_000;

/** Remaining wait of a queued call, `sinceMs` after its estimate was reported. */
export function estimateInWords(
  estimateMs: number | null,
  sinceMs: number,
  isPaused: boolean,
): string {
  if (isPaused) return 'when resumed';
  // The pool reports changes only. An estimate that has passed was wrong.
  if (estimateMs === null || sinceMs > estimateMs + OVERDUE_MS) return 'unknown';
  const leftMs = estimateMs - sinceMs;
  return leftMs < SOON_MS ? 'soon' : `≈ ${duration(leftMs)}`;
}

export function waitInWords(
  waiter: Pick<WaiterView, 'waits_for' | 'scope' | 'cap' | 'needs'>,
): string {
  const { scope } = waiter;
  return waitWords(waiter, scope === undefined ? undefined : scopeWords(scope));
}

/** Explains why there is no estimate. Empty if calls end, or none is queued. */
export function stalledInWords(
  { queued, stalled_ms: stalledMs }: Pick<GroupView, 'queued' | 'stalled_ms'>,
  sinceMs: number,
): string {
  if (queued === 0 || typeof stalledMs !== 'number') return '';
  return `No estimate: no call has ended for ${duration(stalledMs + sinceMs)}.`;
}

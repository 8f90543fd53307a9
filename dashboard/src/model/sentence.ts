import { LANES } from '../../../src/core/words/ticket.ts';
import { count, duration } from '../format.ts';
import type { Slots } from './slots.ts';
import { waitWords } from '../../../src/contract/wait-words.ts';
import { scopeWords } from './scope-words.ts';
import type { GroupView, WaiterView } from './status.ts';

type QueueGauges = Pick<GroupView, 'queued' | 'queued_by_lane' | 'oldest_wait_ms'>;

/** Says what the picture of a pool shows, for those who cannot see it. */
export function sentenceOf(slots: Slots, queue: QueueGauges): string {
  const parts = [`${slotsInWords(slots)} in use`];
  if (slots.cooling > 0) parts.push(`${slots.cooling} cooling down`);
  if (slots.unclaimed > 0) parts.push(`${slots.unclaimed} unclaimed`);
  if (slots.lent > 0) parts.push(`${slots.lent} lent`);
  if (slots.beyond > 0) parts.push(`${slots.beyond} beyond what the upstream takes`);
  parts.push(queueInWords(queue));
  return `${parts.join(', ')}.`;
}

/** As in `5 of 5 slots`. */
export function slotsInWords(slots: Slots): string {
  const { capacity } = slots;
  if (capacity === null) return `${count(slots.inUse)} slots, no limit`;
  return `${count(slots.inUse)} of ${count(capacity)} ${capacity === 1 ? 'slot' : 'slots'}`;
}

/** Says what slots are that Workers were lent. */
export const PREFETCHED =
  'lent to a Worker, with no call on it: comes back when somebody could use it';

/** Says what slots are that nobody has claimed, and until when. */
export function orphanedInWords(until: string | null): string {
  const at = until === null ? '' : ` by ${new Date(until).toLocaleTimeString('en-GB')}`;
  return `unclaimed: handed out before the last restart of this pool; free${at} unless the call comes back`;
}

function queueInWords({ queued, queued_by_lane, oldest_wait_ms }: QueueGauges): string {
  if (queued === 0) return 'nobody waiting';
  const lanes = LANES.filter((lane) => queued_by_lane[lane] > 0).map(
    (lane) => `${queued_by_lane[lane]} ${lane}`,
  );
  return `${queued} waiting (${lanes.join(', ')}), the oldest for ${duration(oldest_wait_ms)}`;
}

/** How long an estimate must be to be told as a number. */
const SOON_MS = 1_000;

/** How long after an estimate is over a waiter may still go: the news of it takes its time. */
const OVERDUE_MS = 2_000;

/** How long a waiter has to go, `sinceMs` after its estimate was told. */
export function estimateInWords(
  estimateMs: number | null,
  sinceMs: number,
  isPaused: boolean,
): string {
  if (isPaused) return 'when resumed';
  // The pool says nothing while nothing happens in it, and an estimate that is over was wrong.
  if (estimateMs === null || sinceMs > estimateMs + OVERDUE_MS) return 'unknown';
  const leftMs = estimateMs - sinceMs;
  return leftMs < SOON_MS ? 'soon' : `≈ ${duration(leftMs)}`;
}

/** Says what a waiter waits for now. */
export function waitInWords(
  waiter: Pick<WaiterView, 'waits_for' | 'scope' | 'cap' | 'needs'>,
): string {
  const { scope } = waiter;
  return waitWords(waiter, scope === undefined ? undefined : scopeWords(scope));
}

/** Says why no wait can be estimated. Empty: calls end, or none waits. */
export function stalledInWords(
  { queued, stalled_ms: stalledMs }: Pick<GroupView, 'queued' | 'stalled_ms'>,
  sinceMs: number,
): string {
  if (queued === 0 || typeof stalledMs !== 'number') return '';
  return `No estimate: no call has ended for ${duration(stalledMs + sinceMs)}.`;
}

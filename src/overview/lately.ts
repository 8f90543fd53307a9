import { NOT_FAILING_AFTER_MS, NOTHING_LATELY_AFTER_MS, type Lately } from '../contract/status.ts';
import { latest, sumUp } from './joins.ts';

/** A minute: figures of the last minutes are by minutes of the clock. */
const MINUTE_MS = 60_000;

/** Joins how the calls of several pools of a group fared: one of them that serves calls is enough. */
export function joinLately(all: readonly Lately[]): { readonly lately?: Lately } {
  const [first, ...others] = all;
  if (first === undefined) return {};
  if (others.length === 0) return { lately: first };
  const failing = all.filter(({ failing_since: since }) => since !== null);
  const [begin = null] = failing.flatMap(({ failing_since: since }) => since ?? []).toSorted();
  const servedAt = latest(all.map(({ served_at: at }) => at));
  const failedAt = latest(all.map(({ failed_at: at }) => at));
  const isServing = servedAt !== null && failedAt !== null && minutesTo(failedAt, servedAt) < 1;
  const since = begin !== null && servedAt !== null && servedAt > begin ? servedAt : begin;
  return {
    lately: {
      served: all.reduce((sum, { served }) => sum + served, 0),
      served_at: servedAt,
      failing_since: isServing ? null : since,
      failed_at: isServing ? null : failedAt,
      is_failing: !isServing && failing.some(({ is_failing: isFailing }) => isFailing),
      refusals: isServing ? {} : sumUp(failing.map(({ refusals }) => refusals)),
      rejected: isServing ? {} : sumUp(failing.map(({ rejected }) => rejected)),
      ended: isServing ? {} : sumUp(failing.map(({ ended }) => ended)),
    },
  };
}

function minutesTo(later: string, earlier: string): number {
  return (Date.parse(later) - Date.parse(earlier)) / MINUTE_MS;
}

/** Reads what a pool that rests has said of its last minutes. */
export function restingLately(
  said: Lately | undefined,
  idleMs: number,
): { readonly lately?: Lately } {
  if (said === undefined || idleMs >= NOTHING_LATELY_AFTER_MS) return {};
  if (idleMs < NOT_FAILING_AFTER_MS) return { lately: said };
  return { lately: { ...said, is_failing: false } };
}

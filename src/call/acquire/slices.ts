import type { AcquireAnswer } from '../../contract/rpc/group-rpc.ts';
import { SLICE_MAX_MS } from '../../core/words/settings.ts';

/** Length of the first slice, and minimum length of all. */
const SLICE_MIN_MS = 8_000;

/**
 * Length of the slice of a call that does not allow queueing, and minimum length for a caller with position updates.
 */
const SLICE_SHORT_MS = 2_000;

/** How long before the end of its slice or wait the Worker asks again, so that its queue position never expires. */
export const CALL_AHEAD_MS = 1_000;

export interface PositionUpdate extends Pick<PendingAnswer, 'position' | 'waitsFor' | 'quietMs'> {
  /** null if it cannot be estimated. */
  readonly estimateMs: number | null;
}

type PendingAnswer = Extract<AcquireAnswer, { kind: 'pending' }>;

export function placeIn({
  estimateMs,
  isUnforeseen,
  ...place
}: Omit<PendingAnswer, 'kind' | 'configVersion'>): PositionUpdate {
  return { ...place, estimateMs: isUnforeseen === true ? null : estimateMs };
}

export interface PositionListener {
  readonly everyMs: number;
  report(place: PositionUpdate): void;
}

/**
 * Returns how long a call waits before it asks its pool again. It is half the estimated wait, so that deferred waiters
 * poll rarely and still notice changes in time. Without an estimate, it is the longest slice.
 */
export function sliceFor(
  estimateMs: number | null,
  wait: boolean,
  listener: PositionListener | null,
): number {
  const sliceMaxMs = wait ? SLICE_MAX_MS : SLICE_SHORT_MS;
  const sliceMs = Math.min(sliceMaxMs, Math.max(SLICE_MIN_MS, (estimateMs ?? Infinity) / 2));
  // Each call returns the newest position, so that each comment can include it.
  return listener === null ? sliceMs : Math.min(sliceMs, reportedEveryMs(listener) + CALL_AHEAD_MS);
}

/**
 * How long a deferred waiter waits before it polls again. `leftMs` is how much of its maximum wait is left. It is
 * parked before that ends.
 */
export function restFor(
  askAgainMs: number,
  leftMs: number,
  listener: PositionListener | null,
): number {
  const restMs = listener === null ? askAgainMs : Math.min(askAgainMs, reportedEveryMs(listener));
  const parkedInMs = leftMs - CALL_AHEAD_MS;
  return parkedInMs > 0 ? Math.min(restMs, parkedInMs) : restMs;
}

function reportedEveryMs({ everyMs }: PositionListener): number {
  return Math.max(SLICE_SHORT_MS - CALL_AHEAD_MS, everyMs);
}

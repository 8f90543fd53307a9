import type { AcquireAnswer } from '../../contract/rpc/group-rpc.ts';
import { SLICE_MAX_MS } from '../../core/words/settings.ts';

/** How long the first slice is, and the shortest. */
const SLICE_MIN_MS = 8_000;

/**
 * How long the slice of a call is that does not want to wait, and the shortest of one whose caller is told its
 * place.
 */
const SLICE_SHORT_MS = 2_000;

/** How long before its slice ends, or its wait, the Worker asks again, so that a place in the queue never lapses. */
export const CALL_AHEAD_MS = 1_000;

/** The place of a queued call, as its group reports it. */
export interface PositionUpdate extends Pick<PendingAnswer, 'position' | 'waitsFor' | 'quietMs'> {
  /** Null: no estimate can be made. */
  readonly estimateMs: number | null;
}

type PendingAnswer = Extract<AcquireAnswer, { kind: 'pending' }>;

/** Reads the place from an answer of a group. */
export function placeIn({
  estimateMs,
  isUnforeseen,
  ...place
}: Omit<PendingAnswer, 'kind' | 'configVersion'>): PositionUpdate {
  return { ...place, estimateMs: isUnforeseen === true ? null : estimateMs };
}

/** Somebody who wants to know where a call stands, so often. */
export interface PositionListener {
  readonly everyMs: number;
  report(place: PositionUpdate): void;
}

/**
 * Returns how long a call waits before it asks its pool again: half the estimated wait, so that deferred waiters poll rarely and
 * still notice changes in time. Without an estimate, it is the longest slice.
 */
export function sliceFor(
  estimateMs: number | null,
  wait: boolean,
  listener: PositionListener | null,
): number {
  const sliceMaxMs = wait ? SLICE_MAX_MS : SLICE_SHORT_MS;
  const sliceMs = Math.min(sliceMaxMs, Math.max(SLICE_MIN_MS, (estimateMs ?? Infinity) / 2));
  // Each call brings the newest place, so that each comment can tell it.
  return listener === null ? sliceMs : Math.min(sliceMs, reportedEveryMs(listener) + CALL_AHEAD_MS);
}

/**
 * Computes how long a call rests that is told to ask again later. `leftMs`: how long it may still wait; towards the end
 * of that it is to be parked.
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

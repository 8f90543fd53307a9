/** A stretch of time that charts show, with a step that makes 200 points at the most. */
export interface HistoryRange {
  /** As in a link: `?range=24h`. */
  readonly id: string;
  readonly name: string;
  readonly lengthMs: number;
  /** A multiple of what is kept for so long: minutes for a day, quarters of an hour beyond. */
  readonly stepMs: number;
}

const DEFAULT_RANGE: HistoryRange = {
  id: '15m',
  name: '15 minutes',
  lengthMs: 900_000,
  stepMs: 60_000,
};

/** The stretches to choose from, the shortest first. */
export const HISTORY_RANGES: readonly HistoryRange[] = [
  DEFAULT_RANGE,
  { id: '24h', name: '24 hours', lengthMs: 86_400_000, stepMs: 600_000 },
  { id: '7d', name: '7 days', lengthMs: 604_800_000, stepMs: 3_600_000 },
];

/** The stretch that a link names; the shortest where it names none that is known. */
export function rangeNamed(id: string | undefined): HistoryRange {
  return HISTORY_RANGES.find((range) => range.id === id) ?? DEFAULT_RANGE;
}

/** When the range begins, so that its first step is a whole one; epoch milliseconds. */
export function rangeStartMs({ lengthMs, stepMs }: HistoryRange, nowMs: number): number {
  return Math.floor((nowMs - lengthMs) / stepMs) * stepMs;
}

/** How long until the minute is over and a new point has begun, in milliseconds. */
export function untilNextMinuteMs(nowMs: number): number {
  return 60_000 - (nowMs % 60_000);
}

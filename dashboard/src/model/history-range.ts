/** A stretch of time that charts show, with a step that makes 200 points at the most. */
export interface HistoryRange {
  /** As in a link: `?range=24h`. Null: a stretch of somebody's own, `?from=…&to=…`. */
  readonly id: string | null;
  readonly name: string;
  readonly lengthMs: number;
  /** A multiple of what is kept for so long: minutes for a day, quarters of an hour beyond. */
  readonly stepMs: number;
  /** End of it, in epoch milliseconds. Null: now, and it goes on with the time. */
  readonly endMs: number | null;
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Most points of a chart: more are not told apart. */
const POINTS_MAX = 200;

/** Lengths of a step, the shortest first. Those below a quarter of an hour need minutes, which are kept for a day. */
const STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 360].map((minutes) => minutes * MINUTE_MS);
const QUARTER_MS = 15 * MINUTE_MS;

const DEFAULT_RANGE: HistoryRange = {
  id: '15m',
  name: '15 minutes',
  lengthMs: 900_000,
  stepMs: MINUTE_MS,
  endMs: null,
};

/** The stretches to choose from, the shortest first. */
export const HISTORY_RANGES: readonly HistoryRange[] = [
  DEFAULT_RANGE,
  { id: '24h', name: '24 hours', lengthMs: DAY_MS, stepMs: 600_000, endMs: null },
  { id: '7d', name: '7 days', lengthMs: 7 * DAY_MS, stepMs: 3_600_000, endMs: null },
];

/** The terms of a link by which it names a stretch. */
export interface RangeQuery {
  readonly range?: string;
  readonly from?: string;
  readonly to?: string;
}

/** The stretch that a link names: one of its own, or one up to now; the shortest of these where it names none that is known. */
export function rangeOf({ range: id, from, to }: RangeQuery, nowMs: number): HistoryRange {
  const fromMs = Date.parse(from ?? '');
  const toMs = Date.parse(to ?? '');
  if (fromMs < toMs) return ownRange(fromMs, toMs, nowMs);
  return HISTORY_RANGES.find((range) => range.id === id) ?? DEFAULT_RANGE;
}

/** Makes a stretch of somebody's own, of a minute at least. */
export function ownRange(fromMs: number, toMs: number, nowMs: number): HistoryRange {
  const hasMinutes = nowMs - fromMs <= DAY_MS;
  const shortest = hasMinutes ? MINUTE_MS : QUARTER_MS;
  const steps = STEPS_MS.filter((ms) => ms >= shortest);
  const wanted = Math.max(toMs - fromMs, shortest);
  const stepMs = steps.find((ms) => wanted / ms <= POINTS_MAX) ?? DAY_MS;
  const startMs = Math.floor(fromMs / stepMs) * stepMs;
  const endMs = Math.max(Math.ceil(toMs / stepMs) * stepMs, startMs + stepMs);
  return { id: null, name: 'own', lengthMs: endMs - startMs, stepMs, endMs };
}

/** The terms of a link to a stretch, in UTC, so that it says the same to everybody. */
export function linkOf(fromMs: number, toMs: number): Required<Pick<RangeQuery, 'from' | 'to'>> {
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString().slice(0, 19) + 'Z');
  return { from: from ?? '', to: to ?? '' };
}

/** When the range begins, so that its first step is a whole one; epoch milliseconds. */
export function rangeStartMs({ lengthMs, stepMs, endMs }: HistoryRange, nowMs: number): number {
  return Math.floor(((endMs ?? nowMs) - lengthMs) / stepMs) * stepMs;
}

/** Twice as long around the same middle, and not beyond now. */
export function widerThan(range: HistoryRange, nowMs: number): HistoryRange {
  const endMs = range.endMs ?? nowMs;
  const fromMs = endMs - range.lengthMs * 1.5;
  return ownRange(fromMs, Math.min(nowMs, endMs + range.lengthMs / 2), nowMs);
}

/** How long until the minute is over and a new point has begun, in milliseconds. */
export function untilNextMinuteMs(nowMs: number): number {
  return MINUTE_MS - (nowMs % MINUTE_MS);
}

/** An instant as `datetime-local` has it, in the zone of the browser. */
export function asLocal(ms: number): string {
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE_MS);
  return local.toISOString().slice(0, 16);
}

/** Name of the browser's zone, as in `Europe/Berlin`. */
export function zoneName(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

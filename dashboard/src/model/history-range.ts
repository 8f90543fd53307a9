/** A time range of charts. Its step yields at most 200 points. */
export interface HistoryRange {
  /** Id in links, as in `?range=24h`. null for a custom range, `?from=…&to=…`. */
  readonly id: string | null;
  readonly name: string;
  readonly lengthMs: number;
  /** A multiple of the stored resolution: minutes for a day, quarters of an hour beyond. */
  readonly stepMs: number;
  /** End in epoch milliseconds. null for a range that ends now and moves with the time. */
  readonly endMs: number | null;
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** More points than this cannot be distinguished in a chart. */
const POINTS_MAX = 200;

/** Step lengths, shortest first. Steps below a quarter of an hour need minute data, which is kept for a day. */
const STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 360].map((minutes) => minutes * MINUTE_MS);
const QUARTER_MS = 15 * MINUTE_MS;

const DEFAULT_RANGE: HistoryRange = {
  id: '15m',
  name: '15 minutes',
  lengthMs: 900_000,
  stepMs: MINUTE_MS,
  endMs: null,
};

/** Ranges to choose from, shortest first. */
export const HISTORY_RANGES: readonly HistoryRange[] = [
  DEFAULT_RANGE,
  { id: '24h', name: '24 hours', lengthMs: DAY_MS, stepMs: 600_000, endMs: null },
  { id: '7d', name: '7 days', lengthMs: 7 * DAY_MS, stepMs: 3_600_000, endMs: null },
];

export interface RangeQuery {
  readonly range?: string;
  readonly from?: string;
  readonly to?: string;
}

/** Range of a link. The shortest one if the link selects none. */
export function rangeOf({ range: id, from, to }: RangeQuery, nowMs: number): HistoryRange {
  const fromMs = Date.parse(from ?? '');
  const toMs = Date.parse(to ?? '');
  if (fromMs < toMs) return ownRange(fromMs, toMs, nowMs);
  return HISTORY_RANGES.find((range) => range.id === id) ?? DEFAULT_RANGE;
}

/** A custom range of at least one minute. */
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

/** Query of a link to a range, in UTC, so that it means the same for all readers. */
export function linkOf(fromMs: number, toMs: number): Required<Pick<RangeQuery, 'from' | 'to'>> {
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString().slice(0, 19) + 'Z');
  return { from: from ?? '', to: to ?? '' };
}

/** Start of a range in epoch milliseconds, aligned to a whole step. */
export function rangeStartMs({ lengthMs, stepMs, endMs }: HistoryRange, nowMs: number): number {
  return Math.floor(((endMs ?? nowMs) - lengthMs) / stepMs) * stepMs;
}

/** A range of twice the length around the same centre, but not beyond now. */
export function widerThan(range: HistoryRange, nowMs: number): HistoryRange {
  const endMs = range.endMs ?? nowMs;
  const fromMs = endMs - range.lengthMs * 1.5;
  return ownRange(fromMs, Math.min(nowMs, endMs + range.lengthMs / 2), nowMs);
}

/** Milliseconds until the next minute, when a new point begins. */
export function untilNextMinuteMs(nowMs: number): number {
  return MINUTE_MS - (nowMs % MINUTE_MS);
}

/** Formats an instant as a `datetime-local` value, in the time zone of the browser. */
export function asLocal(ms: number): string {
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE_MS);
  return local.toISOString().slice(0, 16);
}

/** Time zone of the browser, such as `Europe/Berlin`. */
export function zoneName(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

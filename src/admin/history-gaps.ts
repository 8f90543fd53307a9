import type * as z from 'zod';
import type { gapSchema } from '../contract/admin/observation-schemas.ts';
import type { PoolHistory } from '../contract/history.ts';
import type { PoolReply } from '../overview/pools.ts';
import type { Marker } from './history-markers.ts';

/** Time without data. In all other times, a missing point means that there was no activity. */
type DataGap = z.output<typeof gapSchema>;

/** Epoch milliseconds. */
interface TimeSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

/** How a group is created: by the configuration, or by its first call. */
export interface PoolLifetime {
  /** Its first call creates it, which is not in the audit log. */
  readonly isByCalls: boolean;
  readonly isConfigured: boolean;
}

/** Maximum number of gaps in a response. The latest ones are kept. */
const GAPS_MAX = 1_000;

type PoolHistories = readonly PoolReply<PoolHistory>[];

/** Returns the gaps of a range, the oldest first, and the start of the data (null if there is none). */
export function gapsIn(
  range: TimeSpan,
  asked: PoolHistories,
  markers: readonly Marker[],
  existence: PoolLifetime,
): { readonly since: string | null; readonly gaps: DataGap[] } {
  const answers = asked.flatMap((one) => ('answer' in one ? [one.answer] : []));
  if (answers.length === 0 && asked.length > 0) {
    return { since: null, gaps: [gapOf(range, 'unreachable')] };
  }
  const absent = absences(range, answers, markers, existence);
  const [first] = absent;
  const isLate = first !== undefined && first.fromMs <= range.fromMs;
  const sinceMs = isLate ? first.toMs : range.fromMs;
  const missing = absent.map((span) => {
    const isBefore = isLate && span === first && sinceMs < range.toMs;
    return gapOf(span, isBefore ? 'before' : 'absent');
  });
  const gaps = [...missing, ...lostIn(asked)];
  return {
    since: sinceMs < range.toMs ? new Date(sinceMs).toISOString() : null,
    gaps: gaps.toSorted((a, b) => Date.parse(a.from) - Date.parse(b.from)).slice(-GAPS_MAX),
  };
}

/** Returns the times in which the group did not exist. Recorded data takes precedence over the audit log. */
function absences(
  range: TimeSpan,
  answers: readonly PoolHistory[],
  markers: readonly Marker[],
  { isByCalls, isConfigured }: PoolLifetime,
): TimeSpan[] {
  const firstMs = firstDataMs(range, answers);
  const absent = isByCalls
    ? [{ ...range, toMs: firstMs ?? range.toMs }]
    : withoutEntry(range, markers, isConfigured);
  const recorded = answers.flatMap(({ points }) => points.map(({ at }) => at));
  return absent.flatMap((span) => {
    const inside = recorded.filter((at) => at >= span.fromMs && at < span.toMs);
    // A point stands for a whole step, and the first data may begin within its step.
    const isFirst = firstMs !== null && firstMs >= span.fromMs && firstMs <= span.toMs;
    const toMs = Math.min(span.toMs, ...inside, ...(isFirst ? [firstMs] : []));
    return toMs > span.fromMs ? [{ fromMs: span.fromMs, toMs }] : [];
  });
}

/** Returns the start of the data of all pools, or null if none of them reports any. */
function firstDataMs({ fromMs }: TimeSpan, answers: readonly PoolHistory[]): number | null {
  const all = answers.flatMap(({ since, points }) =>
    since === null ? points.slice(0, 1).map(({ at }) => at) : [since],
  );
  return all.length === 0 ? null : Math.max(fromMs, Math.min(...all));
}

/** Returns the times in which the configuration did not contain the group, according to the audit log. */
function withoutEntry(
  { fromMs, toMs }: TimeSpan,
  markers: readonly Marker[],
  isConfigured: boolean,
): TimeSpan[] {
  const changes = markers
    .filter(({ kind }) => kind === 'created' || kind === 'removed')
    .map(({ kind, at }) => ({ isThere: kind === 'created', atMs: Date.parse(at) }))
    .toSorted((a, b) => a.atMs - b.atMs);
  const spans: TimeSpan[] = [];
  let isThere = changes[0] === undefined ? isConfigured : !changes[0].isThere;
  let sinceMs = fromMs;
  for (const change of changes) {
    if (!isThere && change.isThere) spans.push({ fromMs: sinceMs, toMs: change.atMs });
    ({ isThere } = change);
    sinceMs = change.atMs;
  }
  if (!isThere) spans.push({ fromMs: sinceMs, toMs });
  return spans;
}

/** Returns the times whose data was lost in restarts of pools. */
function lostIn(asked: PoolHistories): DataGap[] {
  return asked.flatMap((one) => {
    if ('error' in one) return [];
    const { partition } = one.pool;
    return one.answer.gaps.map(({ from, to }) => ({
      ...gapOf({ fromMs: from, toMs: to }, 'lost'),
      partition,
    }));
  });
}

function gapOf({ fromMs, toMs }: TimeSpan, why: DataGap['why']): DataGap {
  return {
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    why,
    partition: null,
  };
}

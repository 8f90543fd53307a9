/** Counts of durations in buckets. Unlike quantiles, counts can be added up over time and over pools. */
export interface Histogram {
  /** One count for each of `BOUNDS_MS`, and a last one for longer durations. Not cumulative. */
  readonly counts: number[];
  sumMs: number;
}

/**
 * Upper bounds of the buckets, in milliseconds. The first 14 are the bounds of OpenTelemetry's GenAI conventions for
 * the duration of an operation (0.01 s, doubled up to 81.92 s). Three more cover the longest usual waits.
 */
export const BOUNDS_MS: readonly number[] = Array.from(
  { length: 17 },
  (_, index) => 10 * 2 ** index,
);

export function emptyHistogram(): Histogram {
  return { counts: emptyCounts(), sumMs: 0 };
}

export function emptyCounts(): number[] {
  return Array.from({ length: BOUNDS_MS.length + 1 }, () => 0);
}

/** Counts a duration `times` times. A negative duration, from a clock that was set back, counts as 0. */
export function observe(histogram: Histogram, durationMs: number, times = 1): void {
  let bucket = 0;
  while (durationMs > (BOUNDS_MS[bucket] ?? Infinity)) bucket += 1;
  histogram.counts[bucket] = (histogram.counts[bucket] ?? 0) + times;
  histogram.sumMs += Math.max(0, durationMs) * times;
}

/** Subtracts `before`, an earlier copy of the same counts. */
export function countsSince(counts: readonly number[], before: readonly number[]): number[] {
  return counts.map((count, bucket) => count - (before[bucket] ?? 0));
}

export function addCounts(a: readonly number[], b: readonly number[]): number[] {
  return a.map((count, bucket) => count + (b[bucket] ?? 0));
}

/**
 * Estimates the duration, in milliseconds, that the share `share` of all durations does not exceed. It interpolates
 * within a bucket, like `histogram_quantile` of Prometheus. Durations beyond the last bound count as that bound. null
 * if nothing was counted.
 */
export function quantileMs(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = share * total;
  let below = 0;
  for (const [bucket, boundMs] of BOUNDS_MS.entries()) {
    const count = counts[bucket] ?? 0;
    if (count > 0 && below + count >= rank) {
      const fromMs = bucket === 0 ? 0 : (BOUNDS_MS[bucket - 1] ?? 0);
      return Math.round(fromMs + ((boundMs - fromMs) * (rank - below)) / count);
    }
    below += count;
  }
  return BOUNDS_MS.at(-1) ?? 0;
}

/**
 * Counts of durations between bounds. Counts alone can be added up over time and over pools,
 * which quantiles cannot.
 */
export interface Histogram {
  /** One for each of `BOUNDS_MS`, and a last one for what is longer than all of them. Not cumulative. */
  readonly counts: number[];
  sumMs: number;
}

/**
 * Upper bounds of the buckets, in milliseconds. The first 14 are those that OpenTelemetry's GenAI
 * conventions give for the duration of an operation (0.01 s, doubled up to 81.92 s); three more reach
 * beyond the longest wait that is usual here.
 */
export const BOUNDS_MS: readonly number[] = Array.from(
  { length: 17 },
  (_, index) => 10 * 2 ** index,
);

export function emptyHistogram(): Histogram {
  return { counts: emptyCounts(), sumMs: 0 };
}

/** Makes as many zeros as there are buckets. */
export function emptyCounts(): number[] {
  return Array.from({ length: BOUNDS_MS.length + 1 }, () => 0);
}

/** Counts a duration, so often. A negative one, of a clock that went back, counts as none. */
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

/** Adds the counts of both. */
export function addCounts(a: readonly number[], b: readonly number[]): number[] {
  return a.map((count, bucket) => count + (b[bucket] ?? 0));
}

/**
 * Estimates the duration, in milliseconds, that the part `share` of all does not exceed: between the bounds
 * of its bucket in proportion, as Prometheus' `histogram_quantile` has it. What is longer than the last bound
 * counts as that long. Null: nothing was counted.
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

/** Returns the quantile for `part`, from 0 to 1. 0 if there are no values. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/** Counts names, the most frequent first. */
export function countsOf(names: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Object.fromEntries([...counts].toSorted(([, a], [, b]) => b - a));
}

/** Formats counts as `429 busy (12), no response (1)`. */
export function listed(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(([name, count]) => `${name} (${count})`);
  return parts.length === 0 ? 'none' : parts.join(', ');
}

export function duration(ms: number): string {
  if (ms >= 60_000) return `${Math.round(ms / 6_000) / 10} min`;
  return ms >= 1_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms)} ms`;
}

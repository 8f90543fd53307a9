/** Prints rows under a title, in columns as wide as they must be. The first column is text. */
export function printTable(
  title: string,
  head: readonly string[],
  rows: readonly string[][],
): void {
  const lines = [[...head], ...rows];
  const widths = head.map((_, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0)));
  const text = lines.map((line) =>
    line
      .map((cell, index) => {
        const width = widths[index] ?? 0;
        return index === 0 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join('  '),
  );
  console.log(`\n${title}\n${text.map((line) => `  ${line}`).join('\n')}`);
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

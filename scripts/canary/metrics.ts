/** Sums the series of a metric with the given labels in Prometheus' text format. */
export function sumOf(
  text: string,
  name: string,
  labels: Readonly<Record<string, string>>,
): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) && wanted.every((each) => line.includes(each)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

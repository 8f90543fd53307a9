import type { Chart, ChartGap } from '../../../model/history-charts.ts';
import { exact } from '../../../format.ts';

interface ChartTableProps {
  readonly chart: Chart;
  readonly steps: readonly number[];
  readonly gaps: readonly ChartGap[];
}

/** Values of a chart, newest first. */
export function ChartTable({ chart, steps, gaps }: ChartTableProps) {
  const isBlank = (at: number, step: number): boolean =>
    gaps.some(({ from, to }) => at < to && (steps[step + 1] ?? Infinity) > from) &&
    chart.lines.every(({ values }) => (values[step] ?? null) === null);
  return (
    <div class="table rows" tabIndex={0} role="region" aria-label={`${chart.title} as a table`}>
      <table>
        <thead>
          <tr>
            <th scope="col">From</th>
            {chart.lines.map(({ label }) => (
              <th scope="col" class="number">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {steps
            .map((at, step) => (
              <tr key={at}>
                <th scope="row">{exact(new Date(at * 1_000).toISOString())}</th>
                {isBlank(at, step) ? (
                  <td class="none" colSpan={Math.max(1, chart.lines.length)}>
                    no data
                  </td>
                ) : (
                  chart.lines.map(({ values }) => (
                    <td class="number">{shown(chart, values[step] ?? null)}</td>
                  ))
                )}
              </tr>
            ))
            .toReversed()}
        </tbody>
      </table>
    </div>
  );
}

function shown(chart: Chart, value: number | null): string {
  return value === null ? '–' : chart.format(value);
}

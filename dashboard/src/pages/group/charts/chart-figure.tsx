import type { Signal } from '@preact/signals';
import { useId, useState } from 'preact/hooks';
import { totalInWords, valueOf, type ChartLine } from '../../../model/history-charts.ts';
import { ChartTable } from './chart-table.tsx';
import { PlotCanvas } from './plot-canvas.tsx';
import type { PlotData } from './plot.ts';

interface ChartFigureProps {
  readonly data: PlotData;
  readonly step: Signal<number | null>;
  readonly scheme: string;
  /** Called with the selected range, in epoch seconds. */
  readonly onZoom: (from: number, to: number) => void;
}

/** A chart with a legend, which shows the values of the selected step, and with a table. */
export function ChartFigure({ data, step, scheme, onZoom }: ChartFigureProps) {
  const { chart, steps, gaps } = data;
  const [isAsked, setAsked] = useState(false);
  const [isMissing, setMissing] = useState(false);
  const isTable = isAsked || isMissing;
  const table = useId();
  return (
    <figure class="chart">
      <figcaption>
        <h3>
          {chart.title} <small>{chart.unit}</small>
        </h3>
        <button
          type="button"
          class="quiet as-table"
          aria-expanded={isTable}
          aria-controls={table}
          disabled={isMissing}
          onClick={() => setAsked(!isAsked)}
        >
          {isTable ? 'Hide table' : 'Show as table'}
          <span class="visually-hidden">: {chart.title}</span>
        </button>
      </figcaption>
      <Legend chart={chart} gaps={gaps} step={step} />
      <PlotCanvas
        data={data}
        step={step}
        scheme={scheme}
        isMissing={isMissing}
        setMissing={setMissing}
        onZoom={onZoom}
      />
      {isMissing && <p class="help">The chart could not be loaded. The table shows its data.</p>}
      <div id={table} hidden={!isTable}>
        {isTable && <ChartTable chart={chart} steps={steps} gaps={gaps} />}
      </div>
    </figure>
  );
}

interface LegendProps extends Pick<PlotData, 'chart' | 'gaps'> {
  readonly step: Signal<number | null>;
}

function Legend({ chart, gaps, step }: LegendProps) {
  const pointed = step.value;
  if (chart.lines.length === 0) return <p class="legend none">None in this time range.</p>;
  return (
    <ul class="legend">
      {chart.lines.map((line) => {
        const value = valueOf(chart, line, pointed);
        return (
          <li key={line.label}>
            <Swatch line={line} /> {line.label}{' '}
            <b>{value === null ? unknownOf(line) : chart.format(value)}</b>
          </li>
        );
      })}
      {pointed === null && (
        <li class="rest">{chart.atRest === 'sum' ? totalInWords(gaps) : 'latest'}</li>
      )}
    </ul>
  );
}

/** A missing limit means no limit. Other missing values were not measured. */
function unknownOf(line: ChartLine): string {
  return line.label === 'limit' ? 'none' : '–';
}

function Swatch({ line }: { readonly line: ChartLine }) {
  return (
    <svg width="18" height="8" aria-hidden="true">
      <line
        x1="0"
        y1="4"
        x2="18"
        y2="4"
        stroke={`var(${line.tone})`}
        stroke-width="2.5"
        stroke-dasharray={line.dash.join(' ')}
      />
    </svg>
  );
}

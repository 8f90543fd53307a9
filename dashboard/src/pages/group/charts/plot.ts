import uPlot from 'uplot';
import type { Chart, ChartGap, ChartLine, HistoryMarker } from '../../../model/history-charts.ts';
import { drawGaps, drawMarkers } from './marker-lines.ts';

/** Loaded with the first chart, because the plot library is large. */

export interface PlotData {
  readonly chart: Chart;
  readonly steps: readonly number[];
  /** End of the data in the last step, in epoch seconds. */
  readonly end: number;
  readonly gaps: readonly ChartGap[];
  readonly markers: readonly HistoryMarker[];
}

export interface PlotHandle {
  /** Shows new data with the same lines. */
  readonly show: (data: PlotData) => void;
  /** Selects a step. null selects none. */
  readonly point: (step: number | null) => void;
  readonly destroy: () => void;
}

const HEIGHT_PX = 150;
const AXIS_PX = 56;

interface OnPlot {
  /** Called when a step is selected. null means none. */
  readonly onPoint: (step: number | null) => void;
  /** Called with the selected range, in epoch seconds. */
  readonly onZoom: (from: number, to: number) => void;
}

/** Draws a chart and keeps it as wide as its element. All plots of a page share a cursor. */
export function drawPlot(
  place: HTMLElement,
  data: PlotData,
  { onPoint, onZoom }: OnPlot,
): PlotHandle {
  let present = data;
  const colours = coloursOf(place, data.chart);
  const options: uPlot.Options = {
    width: place.clientWidth,
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: {
      y: false,
      sync: { key: 'group' },
      drag: { x: true, y: false, setScale: false, dist: 8 },
      points: { size: 7 },
    },
    scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
    axes: axesOf(data.chart, colours),
    series: [{}, ...data.chart.lines.map((line) => seriesOf(line, colours))],
    hooks: {
      setCursor: [(plot) => onPoint(pointedAt(plot, present))],
      setSelect: [(plot) => zoomed(plot, onZoom)],
      draw: [
        (plot) => {
          drawGaps(plot, present.gaps);
          drawMarkers(plot, present.markers);
        },
      ],
    },
  };
  const plot = new uPlot(options, columnsOf(data), place);
  const resized = new ResizeObserver(() => {
    const width = place.clientWidth;
    if (width !== plot.width) plot.setSize({ width, height: HEIGHT_PX });
  });
  resized.observe(place);
  return {
    show: (next) => {
      present = next;
      plot.setData(columnsOf(next));
    },
    point: (step) => {
      if (pointedAt(plot, present) === step) return;
      const at = step === null ? undefined : present.steps[step];
      plot.setCursor({ left: at === undefined ? -10 : plot.valToPos(at, 'x'), top: 1 }, false);
    },
    destroy: () => {
      resized.disconnect();
      plot.destroy();
    },
  };
}

/** Reports a selected range, and clears the selection. */
function zoomed(plot: uPlot, onZoom: OnPlot['onZoom']): void {
  const { left, width } = plot.select;
  if (width === 0) return;
  const [from, to] = [left, left + width].map((px) => plot.posToVal(px, 'x'));
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  if (from !== undefined && to !== undefined) onZoom(from, to);
}

type Colours = (token: string) => string;

/** Resolves CSS variables to colours. They are `light-dark()` pairs, and a canvas needs the current one. */
function coloursOf(place: HTMLElement, chart: Chart): Colours {
  const probe = document.createElement('span');
  place.append(probe);
  const tokens = ['--dim', '--line', ...chart.lines.map(({ tone }) => tone)];
  const known = new Map(
    tokens.map((token) => {
      probe.style.color = `var(${token})`;
      return [token, getComputedStyle(probe).color];
    }),
  );
  probe.remove();
  return (token) => known.get(token) ?? 'currentcolor';
}

/** Columns of a chart. Values of whole steps are extended to the end of the last step. */
function columnsOf({ chart, steps, end }: PlotData): uPlot.AlignedData {
  const values = chart.lines.map((line) => [
    ...line.values,
    line.shape === 'line' ? null : (line.values.at(-1) ?? null),
  ]);
  return [[...steps, end], ...values];
}

function pointedAt(plot: uPlot, { steps }: PlotData): number | null {
  const { idx = null } = plot.cursor;
  return idx === null ? null : Math.min(idx, steps.length - 1);
}

const stepped = uPlot.paths.stepped?.({ align: 1 });

function seriesOf(line: ChartLine, colours: Colours): uPlot.Series {
  const colour = colours(line.tone);
  return {
    label: line.label,
    stroke: colour,
    width: 1.5,
    dash: [...line.dash],
    ...(line.shape === 'line' || stepped === undefined ? {} : { paths: stepped }),
    ...(line.shape === 'area' ? { fill: withAlpha(colour) } : {}),
    // A value between two gaps needs a point, because it has no line.
    points: {
      size: 4,
      fill: colour,
      show: true,
      filter: (plot, series) => alone(plot.data[series]),
    },
  };
}

function alone(values: ArrayLike<number | null | undefined> | undefined): number[] {
  const list = Array.from(values ?? [], (value) => value ?? null);
  const isGap = (step: number): boolean => (list[step] ?? null) === null;
  return [...list.keys()].filter((step) => !isGap(step) && isGap(step - 1) && isGap(step + 1));
}

function withAlpha(colour: string): string {
  return colour.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.14)');
}

function axesOf(chart: Chart, colours: Colours): uPlot.Axis[] {
  const axis = {
    stroke: colours('--dim'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: colours('--line'), width: 1 },
    ticks: { show: false },
  };
  return [
    { ...axis, grid: { show: false }, size: 24, space: 64, values: clockTimes },
    {
      ...axis,
      size: AXIS_PX,
      space: 32,
      values: (_plot, splits) => splits.map((value) => chart.format(value)),
      ...(chart.increments === null ? {} : { incrs: [...chart.increments] }),
    },
  ];
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const DAY_S = 86_400;

function clockTimes(_plot: uPlot, splits: number[]): string[] {
  const isByDay = (splits[1] ?? 0) - (splits[0] ?? 0) >= DAY_S / 2;
  return splits.map((at) => (isByDay ? DAY : CLOCK).format(at * 1_000));
}

import type { Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { returns } from '../../../feed.ts';
import { summaryOf } from '../../../model/history-charts.ts';
import type { PlotData, PlotHandle } from './plot.ts';

interface PlotCanvasProps {
  readonly data: PlotData;
  readonly step: Signal<number | null>;
  /** Light or dark. A plot is redrawn when it changes. */
  readonly scheme: string;
  /** Whether the plot library could not be loaded. New data or a reconnect retry it. */
  readonly isMissing: boolean;
  readonly setMissing: (isMissing: boolean) => void;
  /** Called with the selected range, in epoch seconds. */
  readonly onZoom: (from: number, to: number) => void;
}

/** Container of a plot, with its height reserved before the plot loads. */
export function PlotCanvas({ data, step, scheme, isMissing, setMissing, onZoom }: PlotCanvasProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<PlotHandle | null>(null);
  const latest = useRef(data);
  latest.current = data;
  const zoom = useRef(onZoom);
  zoom.current = onZoom;

  useEffect(() => {
    let isOver = false;
    const draw = async (): Promise<void> => {
      const { drawPlot } = await import('./plot.ts');
      if (isOver || place.current === null) return;
      setMissing(false);
      plot.current = drawPlot(place.current, latest.current, {
        onPoint: (pointed) => (step.value = pointed),
        onZoom: (from, to) => zoom.current(from, to),
      });
    };
    draw().catch(() => isOver || setMissing(true));
    return () => {
      isOver = true;
      plot.current?.destroy();
      plot.current = null;
    };
  }, [scheme, shapeOf(data), step, ...(isMissing ? [returns.value, data] : [0, null])]);

  useEffect(() => plot.current?.show(data), [data]);
  useEffect(() => step.subscribe((pointed) => plot.current?.point(pointed)), [step]);

  return (
    <div
      class="plot"
      ref={place}
      role="img"
      aria-label={summaryOf(data.chart, data.gaps)}
      hidden={isMissing}
    />
  );
}

/** Identifies the lines of a chart. A plot is recreated when they change. */
function shapeOf({ chart }: PlotData): string {
  return chart.lines.map(({ label }) => label).join();
}

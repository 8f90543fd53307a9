import type uPlot from 'uplot';
import { markerWords, type ChartGap, type HistoryMarker } from '../../../model/history-charts.ts';

export function drawMarkers(plot: uPlot, markers: readonly HistoryMarker[]): void {
  const lines = markers.flatMap((marker) => {
    const at = Date.parse(marker.at) / 1_000;
    const { min = null, max = null } = plot.scales['x'] ?? {};
    if (min === null || max === null || at < min || at > max) return [];
    return [lineOf(marker, plot.valToPos(at, 'x'), plot.over.clientWidth)];
  });
  for (const old of plot.over.querySelectorAll('.marker')) old.remove();
  plot.over.append(...lines);
}

/** Minimum width of a gap that fits its label. */
const LABEL_PX = 150;

/** Hatches times without data. An empty area would look like a time without events. */
export function drawGaps(plot: uPlot, gaps: readonly ChartGap[]): void {
  const { min = null, max = null } = plot.scales['x'] ?? {};
  const bands = gaps.flatMap(({ from, to, label }) => {
    if (min === null || max === null || to < min || from > max) return [];
    const band = document.createElement('span');
    const left = plot.valToPos(Math.max(from, min), 'x');
    band.className = 'gap';
    const width = Math.max(2, plot.valToPos(Math.min(to, max), 'x') - left);
    band.style.left = `${left}px`;
    band.style.width = `${width}px`;
    if (width >= LABEL_PX) band.dataset['label'] = label;
    return [band];
  });
  for (const old of plot.over.querySelectorAll('.gap')) old.remove();
  plot.over.append(...bands);
}

function lineOf(marker: HistoryMarker, leftPx: number, widthPx: number): HTMLElement {
  const line = document.createElement('span');
  line.className = 'marker';
  line.dataset['kind'] = marker.kind;
  line.dataset['label'] = markerWords(marker);
  // A label at the right end would be cut off.
  if (leftPx > widthPx / 2) line.dataset['end'] = '';
  line.style.left = `${leftPx}px`;
  return line;
}

import type { GaugeRow } from '../../contract/gauges.ts';
import type { MetricFamily } from '../../contract/metric.ts';
import { BOUNDS_MS, type Histogram } from '../../core/parts/totals.ts';

type MetricRow = Pick<GaugeRow, 'shape' | 'metric' | 'label' | 'labels'>;

export type Labels = Readonly<Record<string, string>>;

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

const JOINS = {
  sum: (a: number, b: number) => a + b,
  max: (a: number, b: number) => Math.max(a, b),
  min: (a: number, b: number) => Math.min(a, b),
};

const SUFFIX = { gauge: '', counter: '_total' } as const;

/**
 * Collects samples and writes them in the text format. Samples of the same series are joined, which combines pools with
 * the same labels.
 */
export class Exposition {
  /** By family, in the order of the first sample, and then by the text before the value. */
  readonly #samples = new Map<MetricFamily, Map<string, number>>();

  add(
    family: MetricFamily & { readonly type: keyof typeof SUFFIX },
    labels: Labels,
    value: number,
  ): void {
    this.#put(family, `${family.name}${SUFFIX[family.type]}${labelsText(labels)}`, value);
  }

  /** Adds one series for each key of `values`. The key is the value of the label `label`. */
  addEach(
    family: MetricFamily & { readonly type: keyof typeof SUFFIX },
    labels: Labels,
    label: string,
    values: Readonly<Record<string, number>>,
  ): void {
    for (const [key, value] of Object.entries(values)) {
      this.add(family, { ...labels, [label]: key }, value);
    }
  }

  /** Adds the samples of a table of gauges. Rows without a metric or a value have none. */
  addRows(
    rows: Readonly<Record<string, MetricRow>>,
    labels: Labels,
    figures: Readonly<Record<string, unknown>>,
  ): void {
    for (const [name, { shape, metric, label, labels: fixed }] of Object.entries(rows)) {
      const value = figures[name];
      if (metric === undefined || value === undefined || value === null) continue;
      const own = { ...labels, ...fixed };
      if (label !== undefined) this.addEach(metric, own, label, value as Record<string, number>);
      else this.add(metric, own, shape === 'ms' ? Number(value) / 1_000 : Number(value));
    }
  }

  /** Adds a histogram of durations, in seconds by Prometheus convention. */
  addHistogram(family: MetricFamily, labels: Labels, { counts, sumMs }: Readonly<Histogram>): void {
    let cumulative = 0;
    for (const [bucket, count] of counts.entries()) {
      cumulative += count;
      const boundMs = BOUNDS_MS[bucket];
      const le = boundMs === undefined ? '+Inf' : String(boundMs / 1_000);
      this.#put(family, `${family.name}_bucket${labelsText({ ...labels, le })}`, cumulative);
    }
    this.#put(family, `${family.name}_sum${labelsText(labels)}`, sumMs / 1_000);
    this.#put(family, `${family.name}_count${labelsText(labels)}`, cumulative);
  }

  toResponse(): Response {
    return new Response(this.#text(), {
      headers: { 'content-type': CONTENT_TYPE, 'cache-control': 'no-store' },
    });
  }

  #text(): string {
    const lines: string[] = [];
    for (const [family, samples] of this.#samples) {
      const { type, help } = family;
      const name = type === 'histogram' ? family.name : `${family.name}${SUFFIX[type]}`;
      lines.push(`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`);
      for (const [series, value] of samples) lines.push(`${series} ${valueText(value)}`);
    }
    return `${lines.join('\n')}\n`;
  }

  #put(family: MetricFamily, series: string, value: number): void {
    const samples = this.#samples.get(family) ?? new Map<string, number>();
    this.#samples.set(family, samples);
    const known = samples.get(series);
    samples.set(series, known === undefined ? value : JOINS[family.join](known, value));
  }
}

function labelsText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeLabel(value: string): string {
  return value
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\n', String.raw`\n`);
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', String.raw`\\`).replaceAll('\n', String.raw`\n`);
}

function valueText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? 'NaN' : `${value < 0 ? '-' : '+'}Inf`;
}

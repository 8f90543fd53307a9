import {
  GAUGES,
  MEMBER_GAUGES,
  METRICS_ONLY,
  type GaugeRow,
} from '../../../src/contract/gauges.ts';
import type { MetricFamily } from '../../../src/contract/metric.ts';
import * as families from '../../../src/http/metrics.ts';

const ROWS: readonly Pick<GaugeRow, 'shape' | 'metric'>[] = [
  ...Object.values(GAUGES),
  ...Object.values(MEMBER_GAUGES),
  ...Object.values(METRICS_ONLY),
];

/** Every metric, once. Several rows may share one. */
export const ALL_FAMILIES: readonly MetricFamily[] = [
  ...Object.values(families).filter((one) => typeof one === 'object'),
  ...new Set(ROWS.flatMap(({ metric }) => metric ?? [])),
];

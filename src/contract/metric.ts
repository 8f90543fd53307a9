/** One metric of `/metrics` with all its series. */
export interface MetricFamily {
  /** Without suffixes such as `_total` or `_bucket`. */
  readonly name: string;
  readonly type: 'gauge' | 'counter' | 'histogram';
  readonly help: string;
  /** How samples with the same labels are joined. */
  readonly join: 'sum' | 'max' | 'min';
}

/* @__NO_SIDE_EFFECTS__ */
export const gauge = (name: string, help: string, join: MetricFamily['join'] = 'sum') =>
  ({ name: `headgate_${name}`, type: 'gauge', help, join }) as const;

/* @__NO_SIDE_EFFECTS__ */
export const counter = (name: string, help: string) =>
  ({ name: `headgate_${name}`, type: 'counter', help, join: 'sum' }) as const;

/* @__NO_SIDE_EFFECTS__ */
export const histogram = (name: string, help: string) =>
  ({ name: `headgate_${name}`, type: 'histogram', help, join: 'sum' }) as const;

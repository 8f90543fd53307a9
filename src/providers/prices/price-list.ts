/**
 * USD per million tokens: input, cached input, cache write, output. null if the list has no separate price, so that the
 * price of input applies.
 */
export type RateRow = readonly [
  input: number,
  cacheRead: number | null,
  cacheWrite: number | null,
  output: number,
];

/**
 * The prices of some models of one upstream. The names are separated by spaces, in lower case, and without `models/` or
 * a vendor before them, unless the prices of two vendors differ. Models that cost more with a long prompt have a last
 * element: the number of input tokens above which other rates apply to the whole call, and these rates.
 */
type PriceRow = readonly [
  models: string,
  ...rates: RateRow,
  above?: readonly [inputTokens: number, ...rates: RateRow],
];

/** Prices of one upstream, from a public list. */
export interface PriceList {
  readonly source: string;
  /** When they were last verified, as `YYYY-MM-DD`. */
  readonly date: string;
  readonly rows: readonly PriceRow[];
}

/**
 * USD per million tokens: input, cached input, cache write, output. Null: the list has no price of its
 * own for it, so it is paid as input.
 */
export type RateRow = readonly [
  input: number,
  cacheRead: number | null,
  cacheWrite: number | null,
  output: number,
];

/**
 * The prices of some models of one upstream, whose names stand in one text with spaces between them: in
 * lower case and without `models/` or a vendor before them, unless two vendors' prices differ.
 * Behind the rates, for models that cost more with a long prompt: from how many input tokens on, and
 * the rates of the whole call then.
 */
type PriceRow = readonly [
  models: string,
  ...rates: RateRow,
  above?: readonly [inputTokens: number, ...rates: RateRow],
];

/** Prices of one upstream, as some public list had them. */
export interface PriceList {
  /** Where the figures were published. */
  readonly source: string;
  /** When they were last known to hold, as `YYYY-MM-DD`. */
  readonly date: string;
  readonly rows: readonly PriceRow[];
}

/** The rate limits of a group. Null: none. 0 lets nothing pass. */
export interface RateSettings {
  /** Requests per minute, and per day. */
  readonly rpm: number | null;
  readonly rpd: number | null;
  /** Tokens of input and output together per minute, and per day. */
  readonly tpm: number | null;
  readonly tpd: number | null;
  /** Tokens of input, and of output, per minute. */
  readonly itpm: number | null;
  readonly otpm: number | null;
  /** Maximum calls that start in a second: it bounds how fast the slots fill. */
  readonly startsPerS: number | null;
  /** How long the rate of a limit per minute takes to bring what may go at once, in milliseconds. */
  readonly burstMs: number;
}

/** The name of a limit in the settings. */
export type LimitName = Exclude<keyof RateSettings, 'burstMs'>;

/** A limit that a call is larger than, with both figures. */
export interface Exceeded {
  readonly limit: LimitName;
  readonly limitAmount: number;
  readonly amount: number;
}

/** Maximum cost of a group in each hour, day and month of UTC. Null: any amount. */
export interface BudgetSettings {
  readonly perHourUsd: number | null;
  readonly perDayUsd: number | null;
  readonly perMonthUsd: number | null;
}

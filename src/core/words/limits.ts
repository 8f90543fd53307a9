/** The rate limits of a group. null means no limit, and 0 lets no call pass. */
export interface RateSettings {
  /** Requests per minute and per day. */
  readonly rpm: number | null;
  readonly rpd: number | null;
  /** Input and output tokens together, per minute and per day. */
  readonly tpm: number | null;
  readonly tpd: number | null;
  /** Input tokens and output tokens per minute. */
  readonly itpm: number | null;
  readonly otpm: number | null;
  /** Maximum number of calls that start within one second. It bounds how fast the slots fill. */
  readonly startsPerS: number | null;
  /** The burst of a limit per minute, as the time in which its rate refills it, in milliseconds. */
  readonly burstMs: number;
}

export type LimitName = Exclude<keyof RateSettings, 'burstMs'>;

/** A limit that a single call exceeds, with both amounts. */
export interface Exceeded {
  readonly limit: LimitName;
  readonly limitAmount: number;
  readonly amount: number;
}

/** Maximum cost of a group in each UTC hour, day and month. null means no limit. */
export interface BudgetSettings {
  readonly perHourUsd: number | null;
  readonly perDayUsd: number | null;
  readonly perMonthUsd: number | null;
}

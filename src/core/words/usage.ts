/** The expected use of a call, before its upstream has counted it. */
export interface CallEstimate {
  /** Estimated input by a rule of thumb. The group corrects it by what it learned about the model. */
  readonly inputTokens: number;
  /** The body was not read, so `inputTokens` is estimated from its length. Absent if it was read. */
  readonly isInputGuess?: boolean;
  /** Minimum input of a body that was read. Absent if `inputTokens` is exact. */
  readonly leastInputTokens?: number;
  /** Maximum number of output tokens that the call allows. null if it sets none. */
  readonly maxOutputTokens: number | null;
  /** Output tokens to reserve, as the provider counts them: the maximum, the mean of the model, or none. */
  readonly reserve: 'max_tokens' | 'mean' | 'none';
  /** USD per token. null if unknown, which counts as no cost. */
  readonly price: TokenPrices | null;
  /** Prices at members, by member id. Absent if they are the same everywhere. */
  readonly pricesAt?: Readonly<Record<string, TokenPrices>>;
  /** The call counts in the costs of this group and of no other group. Absent if it does not. */
  readonly isBilled?: boolean;
  /** The team of the key in these costs. Absent if there is none. */
  readonly team?: string;
}

/** USD per token. */
export interface TokenPrices {
  readonly input: number;
  readonly output: number;
}

/** Requests and tokens of a call, either reserved at its grant or settled at its end. */
export interface CallUsage {
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The use of a call, as counted by its upstream. */
export interface Settlement {
  /** 0 if the upstream does not count a call that it refused. */
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly usd: number;
  /** All tokens of the call, whether or not they count towards a limit. null if the upstream did not report them. */
  readonly seen: { readonly inputTokens: number; readonly outputTokens: number } | null;
  /** The part of its input that came from a cache. Absent if none did, or if unknown. */
  readonly cachedTokens?: number;
  /** Its price is unknown, so `usd` is 0. Absent if it is known. */
  readonly isUnpriced?: boolean;
  /** The entry in the costs of this group, for a call without a reservation. Absent if `Reserved` holds it. */
  readonly bill?: Bill;
}

/** The entry in the costs of a group for a call without a reservation. */
export interface Bill {
  /** The team of the key. null if there is none. */
  readonly team: string | null;
  /** The model in the request, or in the answer. null if neither is known. */
  readonly model: string | null;
}

/** Everything that a call reserves at its grant. */
export interface Demand extends CallUsage {
  readonly slots: number;
  /** Its expected cost. 0 if its price is unknown. */
  readonly usd: number;
  /** Costs at members, by member id. Absent if they are the same everywhere. */
  readonly usdAt?: ReadonlyMap<string, number>;
}

/** The part of the group's limits that a call reserves until its upstream has counted it. It is stored in the row. */
export interface Reserved {
  readonly demand: CallUsage;
  readonly usd: number;
  /** The uncorrected estimate of its input, to learn from. null if there was none. */
  readonly inputEstimate: number | null;
  /** The call counts in the costs of this group, and whether it was queued here. Absent if it does not count. */
  readonly billed?: 'at_once' | 'waited';
  /** Its price was unknown. Absent if it was known. */
  readonly isUnpriced?: true;
  /** The team that is charged. Absent if there is none. */
  readonly team?: string;
}

/** The use of calls: as expected, as reserved, and as their upstream counted it. */

/** The expected use of a call, before its upstream has counted it. */
export interface CallEstimate {
  /** Its input by a rule of thumb; the group corrects it by what it learned of the model. */
  readonly inputTokens: number;
  /** The body was not read, so `inputTokens` is estimated from its length. Absent if it was read. */
  readonly isInputGuess?: boolean;
  /** Minimum input of a body that was read. Absent if `inputTokens` is exact. */
  readonly leastInputTokens?: number;
  /** The most output tokens that the call allows; null: it does not say. */
  readonly maxOutputTokens: number | null;
  /** Output to reserve, by what the provider does: the most, the mean of the model, or none. */
  readonly reserve: 'max_tokens' | 'mean' | 'none';
  /** USD per token. Null: not known, which costs nothing. */
  readonly price: TokenPrices | null;
  /** The same at members, by their ids, where it is not the same at all. Absent: it is. */
  readonly pricesAt?: Readonly<Record<string, TokenPrices>>;
  /** The call stands in the costs of this group, and of no other that it is in. Absent: it does not. */
  readonly isBilled?: boolean;
  /** Team of the key that a call in these costs comes with. Absent: none. */
  readonly team?: string;
}

/** USD per token of the input, and of the output. */
export interface TokenPrices {
  readonly input: number;
  readonly output: number;
}

/** Requests and tokens of a call: as reserved at its grant, and as it turned out. */
export interface CallUsage {
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The use of a call, as its upstream counts it. */
export interface Settlement {
  /** 0 where the upstream does not count a call that it refused. */
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly usd: number;
  /** All tokens of the call, whatever counts towards a limit; null: the upstream did not say. */
  readonly seen: { readonly inputTokens: number; readonly outputTokens: number } | null;
  /** The part of its input that came from a cache. Absent: none, or nobody says. */
  readonly cachedTokens?: number;
  /** Its price is not known, so `usd` is 0 for want of one. Absent: it is known. */
  readonly isUnpriced?: boolean;
  /** Nothing was reserved for the call, and it stands in the costs of this group. Absent: `Reserved` says whether it does. */
  readonly bill?: Bill;
}

/** The place in the costs of a group of a call for which nothing was reserved. */
export interface Bill {
  /** Team of the key that the call comes with. Null: none. */
  readonly team: string | null;
  /** The model that it named, or that its answer named. Null: neither is known. */
  readonly model: string | null;
}

/** All that a call takes at its grant. */
export interface Demand extends CallUsage {
  readonly slots: number;
  /** Its expected cost; 0 where its price is not known. */
  readonly usd: number;
  /** The same at members, by their ids, where it is not the same at all. Absent: it is. */
  readonly usdAt?: ReadonlyMap<string, number>;
}

/** The part of the group's limits that a call holds until its upstream has counted it. It is in the row. */
export interface Reserved {
  readonly demand: CallUsage;
  readonly usd: number;
  /** The estimate of its input before it was corrected, to learn from; null: there was none. */
  readonly inputEstimate: number | null;
  /** The call stands in the costs of this group, and whether it had to wait here. Absent: it does not. */
  readonly billed?: 'at_once' | 'waited';
  /** Its price was not known. Absent: it was. */
  readonly isUnpriced?: true;
  /** The team that it is charged to there. Absent: none. */
  readonly team?: string;
}

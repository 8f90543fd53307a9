import type { RateSettings } from '../words/limits.ts';
import type { MemberId } from '../words/ids.ts';
import type { Ticket } from '../words/ticket.ts';
import type { CallEstimate, CallUsage, Demand, TokenPrices } from '../words/usage.ts';
import { inputFactor, outputMean, type TokenFactors } from './token-factors.ts';

/** The limits that estimates are reduced to. */
export interface GuessRates extends Pick<RateSettings, 'itpm' | 'otpm' | 'tpm' | 'tpd'> {
  /** The lowest budget above 0. */
  readonly usd: number | null;
}

/** The use that is assumed for a call without an estimate. */
export const ONE_REQUEST: CallUsage = { requests: 1, inputTokens: 0, outputTokens: 0 };

/** Output tokens that are assumed if the model is unknown and the call sets no maximum. */
const OUTPUT_GUESS_TOKENS = 1_000;

/**
 * Computes the demand of a ticket from what the group has learned about its model. Estimates never
 * exceed the limits, so no call is rejected permanently because of an estimate.
 */
export function demandOf(
  factors: TokenFactors,
  rates: GuessRates,
  { slots, estimate, holder }: Pick<Ticket, 'slots' | 'estimate' | 'holder'>,
): Demand {
  if (estimate === null) return { slots, ...ONE_REQUEST, usd: 0 };
  const model = holder.model ?? '';
  const { maxOutputTokens, reserve, price, pricesAt } = estimate;
  const counted = Math.max(1, Math.round(estimate.inputTokens * inputFactor(factors, model)));
  const inputTokens = inputWithin(rates, estimate, counted);
  const likely = Math.round(outputMean(factors, model) ?? OUTPUT_GUESS_TOKENS);
  const expected = Math.min(likely, maxOutputTokens ?? Infinity);
  const besideInput = Math.max(0, leastOf(rates.tpm, rates.tpd) - inputTokens);
  const guessed = Math.min(expected, leastOf(rates.otpm), besideInput);
  const most = maxOutputTokens ?? guessed;
  const outputTokens = { max_tokens: most, mean: guessed, none: 0 }[reserve];
  // If the body was read, budgets count the whole estimate, because spent money is not refunded.
  const charged = estimate.isInputGuess === true ? inputTokens : counted;
  const costAt = ({ input, output }: TokenPrices): number => {
    const usd = charged * input;
    const besideOutput = Math.max(0, (rates.usd ?? Infinity) - expected * output);
    return (estimate.isInputGuess === true ? Math.min(usd, besideOutput) : usd) + expected * output;
  };
  const usd = price === null ? 0 : costAt(price);
  const demand = { slots, requests: 1, inputTokens, outputTokens, usd };
  if (pricesAt === undefined) return demand;
  const costs = Object.entries(pricesAt).map(([id, prices]) => [id, costAt(prices)] as const);
  return { ...demand, usdAt: new Map(costs) };
}

/** Reduces an estimate of the input to the limits, unless more is certain. */
function inputWithin(rates: GuessRates, estimate: CallEstimate, counted: number): number {
  const { isInputGuess, leastInputTokens, maxOutputTokens, reserve } = estimate;
  const least = isInputGuess === true ? 0 : leastInputTokens;
  if (least === undefined) return counted;
  // At least one token. Otherwise a call of unknown length would cost nothing.
  const output = reserve === 'max_tokens' ? (maxOutputTokens ?? 0) : 0;
  const most = Math.max(1, Math.min(leastOf(rates.itpm), leastOf(rates.tpm, rates.tpd) - output));
  return Math.max(least, Math.min(counted, most));
}

export function demandAt(demand: Demand, member: MemberId): Demand {
  const { usd, usdAt } = demand;
  return usdAt === undefined ? demand : { ...demand, usd: usdAt.get(member) ?? usd };
}

/** Returns the lowest limit, and at least 1. With 0, a call without tokens would pass it. */
function leastOf(...limits: readonly (number | null)[]): number {
  return Math.max(1, Math.min(...limits.map((limit) => limit ?? Infinity)));
}

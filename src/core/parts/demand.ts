import type { RateSettings } from '../words/limits.ts';
import type { MemberId } from '../words/ids.ts';
import type { Ticket } from '../words/ticket.ts';
import type { Usage, Demand, TokenPrices } from '../words/usage.ts';
import { inputFactor, outputMean, type TokenFactors } from './token-factors.ts';

/** The limits that what is only guessed must fit into. */
export type GuessRates = Pick<RateSettings, 'itpm' | 'otpm' | 'tpm' | 'tpd'>;

/** Usage that is assumed of a call without an estimate. */
export const ONE_REQUEST: Usage = { requests: 1, inputTokens: 0, outputTokens: 0 };

/** Output tokens that are assumed of a call of a model of which nothing is known, if the call says nothing. */
const OUTPUT_GUESS_TOKENS = 1_000;

/**
 * Works out what a ticket demands, by what the group has learned of its model. What is only guessed is never
 * more than the limits let pass beside the rest: nobody is rejected for good because of a guess.
 */
export function demandOf(
  factors: TokenFactors,
  rates: GuessRates,
  { slots, estimate, holder }: Pick<Ticket, 'slots' | 'estimate' | 'holder'>,
): Demand {
  if (estimate === null) return { slots, ...ONE_REQUEST, usd: 0 };
  const model = holder.model ?? '';
  const { maxOutputTokens, reserve, price, pricesAt } = estimate;
  // At least one, or a call of an unknown length would cost nothing.
  const counted = Math.max(1, Math.round(estimate.inputTokens * inputFactor(factors, model)));
  const inputMax = leastOf(rates.itpm, rates.tpm, rates.tpd);
  const inputTokens = estimate.isInputGuess === true ? Math.min(counted, inputMax) : counted;
  const likely = Math.round(outputMean(factors, model) ?? OUTPUT_GUESS_TOKENS);
  const expected = Math.min(likely, maxOutputTokens ?? Infinity);
  const besideInput = Math.max(0, leastOf(rates.tpm, rates.tpd) - inputTokens);
  const guessed = Math.min(expected, leastOf(rates.otpm), besideInput);
  const most = maxOutputTokens ?? guessed;
  const outputTokens = { max_tokens: most, mean: guessed, none: 0 }[reserve];
  const costAt = ({ input, output }: TokenPrices): number =>
    inputTokens * input + expected * output;
  const usd = price === null ? 0 : costAt(price);
  const demand = { slots, requests: 1, inputTokens, outputTokens, usd };
  if (pricesAt === undefined) return demand;
  const costs = Object.entries(pricesAt).map(([id, prices]) => [id, costAt(prices)] as const);
  return { ...demand, usdAt: new Map(costs) };
}

/** Reads what a call demands if it runs at a member. */
export function demandAt(demand: Demand, member: MemberId): Demand {
  const { usd, usdAt } = demand;
  return usdAt === undefined ? demand : { ...demand, usd: usdAt.get(member) ?? usd };
}

/** Finds the least of the limits that are set, and 1 where it is 0: a call that takes nothing would pass it. */
function leastOf(...limits: readonly (number | null)[]): number {
  return Math.max(1, Math.min(...limits.map((limit) => limit ?? Infinity)));
}

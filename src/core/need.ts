import { ONE_REQUEST } from './capacity.ts';
import type { RateSettings } from './rate-limits.ts';
import type { Ticket } from './ticket.ts';
import { inputFactor, outputMean, type TokenFactors } from './token-factors.ts';
import type { Need } from './usage.ts';

/** Output that is reserved for a call of a model of which nothing is known, if the call says nothing. */
const OUTPUT_GUESS_TOKENS = 1_000;

/**
 * What a ticket needs, by what the group has learned of its model. No more is set aside than a limit lets
 * pass at all: what a call claims is its caller's word, and where its end is never heard of, it counts.
 */
export function needOf(
  factors: TokenFactors,
  rates: RateSettings,
  { slots, estimate, holder }: Pick<Ticket, 'slots' | 'estimate' | 'holder'>,
): Need {
  if (estimate === null) return { slots, demand: ONE_REQUEST, usd: 0 };
  const model = holder.model ?? '';
  const { maxOutputTokens, reserve, price } = estimate;
  // At least one, or a call of an unknown length would cost nothing.
  const inputTokens = Math.max(1, Math.round(estimate.inputTokens * inputFactor(factors, model)));
  const likely = Math.round(outputMean(factors, model) ?? OUTPUT_GUESS_TOKENS);
  const expected = Math.min(likely, maxOutputTokens ?? Infinity);
  const most = maxOutputTokens ?? expected;
  const outputTokens = { max_tokens: most, mean: expected, none: 0 }[reserve];
  const usd = price === null ? 0 : inputTokens * price.input + expected * price.output;
  const demand = {
    requests: 1,
    inputTokens: Math.min(inputTokens, leastOf(rates.itpm, rates.tpm, rates.tpd)),
    outputTokens: Math.min(outputTokens, leastOf(rates.otpm, rates.tpm, rates.tpd)),
  };
  return { slots, demand, usd };
}

/** The least of the limits that are set, and 1 where it is 0: a call that takes nothing would pass it. */
function leastOf(...limits: readonly (number | null)[]): number {
  return Math.max(1, Math.min(...limits.map((limit) => limit ?? Infinity)));
}

import type { RateSettings, BudgetSettings, LimitName } from '../words/settings.ts';
import type { MemberId } from '../words/ids.ts';
import type { Ticket, CallEstimate, CallUsage, Demand, TokenPrices } from '../words/ticket.ts';
import { limitsOf, type RateLimit } from './rate-limits.ts';

/**
 * Use before it is counted: what a call will probably use of the limits, and what of them is stored ahead of the calls.
 */

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

interface ModelTokens {
  readonly model: string;
  /** The mean of actual divided by estimated input tokens, and its number of samples. */
  inputFactor: number;
  inputSamples: number;
  /** The mean of output tokens, and its number of samples. */
  outputMean: number;
  outputSamples: number;
}

/** Lessons about token estimates by model, newest last. They are stored. */
export interface TokenFactors {
  models: ModelTokens[];
}

/** The use that an upstream reported, and the estimate. null if unknown or incomplete. */
interface SeenUsage {
  /** Before the factor is applied. */
  readonly inputEstimate: number;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** Maximum number of remembered models. The one with the oldest call is removed first. */
export const MODELS_MAX = 100;

/** Maximum length of a name. Names come from callers, and no model has a longer one. */
const MODEL_LENGTH_MAX = 200;

/** Minimum weight of the newest call in a mean. The first samples have equal weights. */
const SAMPLE_WEIGHT = 0.1;

/** Minimum and maximum factor that one call teaches, because images and tools are not text. */
const FACTOR_MIN = 0.5;
const FACTOR_MAX = 2;

export function emptyTokenFactors(): TokenFactors {
  return { models: [] };
}

/** Returns the factor for an estimate of input tokens, from 0.5 to 2. 1 if the model is unknown. */
export function inputFactor({ models }: TokenFactors, model: string): number {
  const known = models.find((each) => each.model === model);
  return known === undefined || known.inputSamples === 0 ? 1 : known.inputFactor;
}

/** Returns the mean of output tokens of the model's last calls. null if the model is unknown. */
export function outputMean({ models }: TokenFactors, model: string): number | null {
  const known = models.find((each) => each.model === model);
  return known === undefined || known.outputSamples === 0 ? null : known.outputMean;
}

export function observeUsage(factors: TokenFactors, model: string, usage: SeenUsage): void {
  if (model.length > MODEL_LENGTH_MAX) return;
  const known = factors.models.find((each) => each.model === model) ?? newModel(model);
  const others = factors.models.filter((each) => each !== known);
  factors.models = [...others.slice(-(MODELS_MAX - 1)), known];
  const { inputEstimate, inputTokens, outputTokens } = usage;
  if (inputTokens !== null && inputEstimate > 0) {
    const seen = Math.min(FACTOR_MAX, Math.max(FACTOR_MIN, inputTokens / inputEstimate));
    known.inputSamples += 1;
    known.inputFactor += weight(known.inputSamples) * (seen - known.inputFactor);
  }
  if (outputTokens !== null) {
    known.outputSamples += 1;
    known.outputMean += weight(known.outputSamples) * (outputTokens - known.outputMean);
  }
}

function newModel(model: string): ModelTokens {
  return { model, inputFactor: 1, inputSamples: 0, outputMean: 0, outputSamples: 0 };
}

function weight(samples: number): number {
  return Math.max(SAMPLE_WEIGHT, 1 / samples);
}

/**
 * Amounts that the row of the controls counts as used in advance: one block of each rate and budget. Grants use up the
 * block and write nothing. A reset loses what is left of it.
 */

/** Amounts by limit. `usd` is the amount of the budgets. */
export type Amounts = Partial<Record<LimitName | 'usd', number>>;

interface AheadLimits {
  readonly rates: RateSettings;
  readonly budgets: BudgetSettings;
}

export interface Ahead {
  /** The blocks in the last row. */
  sizes: Amounts;
  /** What is left of them. A negative amount was used without being stored. */
  left: Amounts;
  /** Amounts refunded since that row. */
  returned: Amounts;
  /** The largest amount that one call has used or refunded since. */
  largest: Amounts;
  /** Whether more of a limit was used than is stored. No grant is answered before a write has corrected that. */
  isOverdrawn: boolean;
}

/**
 * Block sizes: one second of a rate per minute, one hundredth of a limit per day, and one four-hundredth of a budget.
 */
const MINUTE_PART = 1 / 60;
const DAY_PART = 1 / 100;
const BUDGET_PART = 1 / 400;

export function nothingAhead(): Ahead {
  return { sizes: {}, left: {}, returned: {}, largest: {}, isOverdrawn: false };
}

/** Returns the amounts of a use for all limits that have blocks. */
export function amountsOf({ rates, budgets }: AheadLimits, usage: CallUsage, usd: number): Amounts {
  const amounts: Amounts = {};
  for (const { name, amountOf } of blockedLimits(rates)) amounts[name] = amountOf(usage);
  if (leastBudget(budgets) !== Infinity) amounts.usd = usd;
  return amounts;
}

export function useAhead(ahead: Ahead, amounts: Amounts): void {
  for (const [name, amount] of entriesOf(amounts)) {
    if (amount <= 0) continue;
    noteLargest(ahead, name, amount);
    const left = (ahead.left[name] ?? 0) - amount;
    ahead.left[name] = left;
    if (left < 0) ahead.isOverdrawn = true;
  }
}

/**
 * Notes a refund. Grants may not use it before it is written, because a later instance may receive the same refund
 * again. Returns whether the refunds are large enough for a write.
 */
export function returnAhead(ahead: Ahead, amounts: Amounts): boolean {
  let isMuch = false;
  for (const [name, amount] of entriesOf(amounts)) {
    if (amount <= 0) continue;
    noteLargest(ahead, name, amount);
    const size = ahead.sizes[name] ?? 0;
    const returned = (ahead.returned[name] ?? 0) + amount;
    ahead.returned[name] = returned;
    if (returned > size) isMuch = true;
  }
  return isMuch;
}

/**
 * Sets the blocks aside that the next row counts as used. Each covers at least one call as large as recent ones. With
 * `isIdle` there are none.
 *
 * @param room what is left of the limits. A block of a limit per day never exceeds it, because nothing more can be used
 * for hours
 */
export function setAhead(
  ahead: Ahead,
  limits: AheadLimits,
  room: Amounts,
  isIdle: boolean,
): Amounts {
  const sizes: Amounts = {};
  if (!isIdle) {
    for (const [name, size] of blocksOf(limits)) {
      const wanted = Math.max(size, ahead.largest[name] ?? 0);
      const most = isOfDay(name) ? Math.max(0, room[name] ?? 0) : Infinity;
      sizes[name] = Math.min(wanted, most);
    }
  }
  Object.assign(ahead, { sizes, left: { ...sizes }, returned: {}, largest: {} });
  ahead.isOverdrawn = false;
  return sizes;
}

function noteLargest({ largest }: Ahead, name: LimitName | 'usd', amount: number): void {
  largest[name] = Math.max(largest[name] ?? 0, amount);
}

/** Starts per second have no block, because what a reset loses of them refills within a moment. */
function blockedLimits(rates: RateSettings): RateLimit[] {
  return limitsOf(rates).filter(({ name }) => name !== 'startsPerS');
}

function isOfDay(name: LimitName | 'usd'): boolean {
  return name === 'rpd' || name === 'tpd';
}

function leastBudget({ perHourUsd, perDayUsd, perMonthUsd }: BudgetSettings): number {
  return Math.min(...[perHourUsd, perDayUsd, perMonthUsd].map((usd) => usd ?? Infinity));
}

function blocksOf({ rates, budgets }: AheadLimits): [LimitName | 'usd', number][] {
  const blocks: [LimitName | 'usd', number][] = blockedLimits(rates).map(({ name }) => {
    const part = isOfDay(name) ? DAY_PART : MINUTE_PART;
    return [name, (rates[name] ?? 0) * part];
  });
  const budget = leastBudget(budgets);
  if (budget !== Infinity) blocks.push(['usd', budget * BUDGET_PART]);
  return blocks;
}

function entriesOf(amounts: Amounts): [LimitName | 'usd', number][] {
  return Object.entries(amounts) as [LimitName | 'usd', number][];
}

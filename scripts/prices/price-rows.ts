import { listedNames } from '../../src/providers/prices/tiers.ts';
import type { RateRow } from '../../src/providers/prices/price-table.ts';

/** The relevant fields of a models.dev model. Figures are USD per million tokens. */
export interface SourceModel {
  readonly cost?: SourceCost;
  readonly modalities?: { readonly output?: readonly string[] };
}

interface SourceRates {
  readonly input: number;
  readonly output: number;
  readonly cache_read?: number;
  readonly cache_write?: number;
}

interface SourceCost extends SourceRates {
  /** Rates of calls with more input tokens than `tier.size`. */
  readonly tiers?: readonly (SourceRates & { readonly tier: { readonly size: number } })[];
  readonly reasoning?: number;
  readonly output_audio?: number;
  readonly request?: number;
  readonly citation?: number;
}

export interface ModelPrice {
  readonly name: string;
  readonly rates: RateRow;
  readonly above: readonly [inputTokens: number, ...rates: RateRow] | null;
}

/** A model that gets no price, and why. */
export interface LeftOut {
  readonly name: string;
  readonly reason: string;
}

const MOVED = 'stands for a newer model than the one it is listed at';

/** Names whose listed price is wrong for a call, as `upstream model`, with the reason. */
const MISLEADING: Readonly<Record<string, string>> = {
  'azure gpt-4': 'listed at the price of gpt-4-32k',
  'azure model-router': 'the price of the model it chooses comes on top',
  'bedrock au.anthropic.claude-opus-4-6-v1': 'three times the price of every other region',
  'gemini gemini-flash-latest': MOVED,
  'gemini gemini-flash-lite-latest': MOVED,
  'mistral mistral-medium-latest': MOVED,
  'vertex gemini-flash-latest': MOVED,
  'vertex gemini-flash-lite-latest': MOVED,
};

/** Models that output only text, although the list says otherwise. The same list is correct at their vendor. */
const TEXT_ONLY = ['azure gpt-5.1', 'azure gpt-5.1-chat', 'azure gpt-5.1-codex'];

/** Old models that only Azure's list still contains, and that would double its length. */
const RETIRED =
  /^(phi-3|meta-llama-3-|llama-3\.2-|gpt-3\.5-turbo-(03|06|11|instruct)|gpt-4-(32k|turbo-v))/;

/** Returns the prices of one upstream, the most expensive first, then by name, and the models without a price. */
export function pricesOf(
  upstream: string,
  models: Readonly<Record<string, SourceModel>>,
): { readonly prices: readonly ModelPrice[]; readonly leftOut: readonly LeftOut[] } {
  const leftOut: LeftOut[] = [];
  const prices: ModelPrice[] = [];
  for (const [id, model] of Object.entries(models)) {
    const reason = MISLEADING[`${upstream} ${id}`] ?? reasonToLeaveOut(upstream, id, model);
    if (reason === null && model.cost !== undefined) prices.push(priceOf(id, model.cost));
    else leftOut.push({ name: id, reason: reason ?? 'no price' });
  }
  return { prices: withShortNames(prices), leftOut };
}

function reasonToLeaveOut(upstream: string, id: string, model: SourceModel): string | null {
  const { cost, modalities } = model;
  if (cost === undefined) return 'no price';
  if (upstream === 'azure' && RETIRED.test(id)) return 'retired';
  // A price of 0 may mean that the model is free or that its price is unknown.
  if (cost.input === 0 && cost.output === 0) return 'a price of 0';
  const writes = TEXT_ONLY.includes(`${upstream} ${id}`) ? [] : (modalities?.output ?? []);
  if (writes.some((kind) => kind !== 'text')) return 'output that is not only text';
  const { reasoning, output_audio: audio, request, citation } = cost;
  if (audio !== undefined) return 'output that is not only text';
  if (reasoning !== undefined && reasoning !== cost.output) return 'reasoning has its own price';
  if (request !== undefined || citation !== undefined) return 'more than tokens is paid for';
  if ((cost.tiers?.length ?? 0) > 1) return 'more than two sets of rates';
  return null;
}

function priceOf(id: string, cost: SourceCost): ModelPrice {
  const [tier] = cost.tiers ?? [];
  return {
    name: id.toLowerCase(),
    rates: ratesOf(cost),
    above: tier === undefined ? null : [tier.tier.size, ...ratesOf(tier)],
  };
}

/**
 * Parses rates. Cached input that is free or more expensive than input, and cache writes that are cheaper than input,
 * are errors of the list. They get no price of their own and cost as much as input, which is never too little.
 */
function ratesOf({ input, output, cache_read: read, cache_write: write }: SourceRates): RateRow {
  const hasRead = read !== undefined && read > 0 && read <= input;
  const hasWrite = write !== undefined && write >= input;
  return [
    rounded(input),
    hasRead ? rounded(read) : null,
    hasWrite ? rounded(write) : null,
    rounded(output),
  ];
}

function rounded(usd: number): number {
  return Number(usd.toPrecision(6));
}

/** Names that end in a version number. The next number is a different model. */
const NUMBERED = /-00\d$/;

/**
 * Gives each model the shortest name that matches no model with another price, without vendor, date and version.
 * Snapshots with the same price as the model without a date are merged with it.
 */
function withShortNames(prices: readonly ModelPrice[]): readonly ModelPrice[] {
  const byName = new Map<string, ModelPrice>();
  for (const price of prices) {
    const isOurs = (name: string) => {
      const owner = prices.find((other) => other.name === name);
      if (owner !== undefined) return costTheSame(owner, price);
      return prices.every(
        (other) => costTheSame(other, price) || !listedNames(other.name).includes(name),
      );
    };
    const names = NUMBERED.test(price.name) ? [price.name] : listedNames(price.name);
    byName.set(names.findLast(isOurs) ?? price.name, price);
  }
  return [...byName].map(([name, price]) => ({ ...price, name })).toSorted(byPriceThenName);
}

export function costTheSame(a: ModelPrice, b: ModelPrice): boolean {
  return String(a.rates) === String(b.rates) && String(a.above) === String(b.above);
}

function byPriceThenName(a: ModelPrice, b: ModelPrice): number {
  const key = ({ rates, above }: ModelPrice) => [rates[3], ...rates, ...(above ?? [])].map(Number);
  const [one, two] = [key(a), key(b)];
  for (const [index, figure] of one.entries()) {
    const difference = (two[index] ?? 0) - figure;
    if (difference !== 0) return difference;
  }
  return two.length - one.length || (a.name < b.name ? -1 : 1);
}

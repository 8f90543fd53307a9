import type { Dialect } from '../../contract/http.ts';
import { providerNamed, providerOf } from '../catalog.ts';
import prices from './prices.json' with { type: 'json' };
import { listedNames, type TierList } from './tiers.ts';

/**
 * USD per million tokens: input, cached input, cache write, output. null if the list has no separate price, so that the
 * price of input applies.
 */
export type RateRow = readonly [
  input: number,
  cacheRead: number | null,
  cacheWrite: number | null,
  output: number,
];

/**
 * The prices of some models of one upstream. The names are separated by spaces, in lower case, and without `models/` or
 * a vendor before them, unless the prices of two vendors differ. Models that cost more with a long prompt have a last
 * element: the number of input tokens above which other rates apply to the whole call, and these rates.
 */
type PriceRow = readonly [
  models: string,
  ...rates: RateRow,
  above?: readonly [inputTokens: number, ...rates: RateRow],
];

/** Prices of one upstream, from a public list. */
export interface PriceList {
  readonly source: string;
  /** When they were last verified, as `YYYY-MM-DD`. */
  readonly date: string;
  readonly rows: readonly PriceRow[];
}

/** Prices of tokens, in USD per million. */
export interface PriceRates {
  /** Input that was neither read from a cache nor written to one. */
  readonly inputUsd: number;
  readonly cacheReadUsd: number;
  readonly cacheWriteUsd: number;
  readonly outputUsd: number;
}

export interface Price extends PriceRates {
  /** The rates of a whole call with more input tokens than this. null if the rates are always the same. */
  readonly above: { readonly inputTokens: number; readonly rates: PriceRates } | null;
  /** Where the numbers were published, or `configured`. */
  readonly source: string;
  /** When they were last verified, as `YYYY-MM-DD`. null for configured ones. */
  readonly date: string | null;
  /** Configured multiples of the price by tier. Absent if there are none. */
  readonly tiers?: Readonly<Record<string, number>>;
}

/** A price as operators configure it, in USD per million tokens. Caching costs as much as input by default. */
interface PriceOverride {
  readonly input: number;
  readonly output: number;
  readonly cache_read?: number | undefined;
  readonly cache_write?: number | undefined;
  /** Multiples of these prices by service tier. */
  readonly tiers?: Readonly<Record<string, number>> | undefined;
}

/**
 * Prices of one upstream by model. A key is a name, which also applies to its dated snapshots, or a prefix followed by
 * `*`.
 */
export type PriceOverrides = Readonly<Record<string, PriceOverride>>;

export interface BilledUsage {
  /** All of the input, including tokens that were read from a cache or written to one. */
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** The part of the cache writes that is kept for an hour. Absent if there is none. */
  readonly longCacheWriteTokens?: number;
  readonly outputTokens: number;
}

const TOKENS_PER_PRICE = 1_000_000;

/** Price of a one-hour cache write relative to a five-minute one: 2 times the input price to 1.25 times. */
const LONG_CACHE_FACTOR = 2 / 1.25;

/** The listed prices by upstream, as `npm run build:prices` wrote them. */
export const PRICE_LISTS: Readonly<Record<string, PriceList>> = Object.fromEntries(
  Object.entries(prices.rows as unknown as Readonly<Record<string, readonly PriceRow[]>>).map(
    ([id, rows]) => [id, { source: prices.source, date: prices.date, rows }],
  ),
);

/** Every listed price, by upstream and then by model. */
const PRICES: ReadonlyMap<string, ReadonlyMap<string, Price>> = new Map(
  Object.entries(PRICE_LISTS).map(([upstream, list]) => [upstream, pricesOf(list)]),
);

/**
 * Returns the id under which an upstream's prices are listed, for `priceOf`: its own, or its dialect if a provider is
 * known by that.
 */
export function priceListId({
  id,
  dialect,
}: {
  readonly id: string;
  readonly dialect: Dialect;
}): string {
  const isKnownByDialect = providerNamed(dialect)?.isKnownByDialect === true;
  return PRICES.has(id) || !isKnownByDialect ? id : dialect;
}

/** Finds the tier prices of an upstream. Returns null if they are unknown. */
export function tierListOf(upstream: {
  readonly id: string;
  readonly dialect: Dialect;
  readonly baseUrl: string;
}): TierList | null {
  const provider = providerOf(upstream) ?? providerNamed(priceListId(upstream));
  return provider?.tiers ?? null;
}

/**
 * Finds the price of a model, or null if it is unknown. It is never the price of a model with a merely similar name.
 * Configured prices take precedence over listed ones. If several keys match, the longest wins, and a whole name wins
 * over one with `*`. Self-hosted upstreams are in no list.
 */
export function priceOf(
  upstreamId: string,
  model: string | null,
  overrides: PriceOverrides,
): Price | null {
  const names = listedNames(model ?? '');
  const override = overrideFor(names, overrides);
  if (override !== null) return configured(override);
  const listed = PRICES.get(upstreamId);
  for (const name of names) {
    const price = listed?.get(name);
    if (price !== undefined) return price;
  }
  return null;
}

/**
 * Computes the cost of a call in USD. It is not rounded, because a short call of a cheap model costs less than a
 * millionth.
 */
export function costUsd(price: Price, usage: BilledUsage): number {
  const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = usage;
  const longTokens = Math.min(usage.longCacheWriteTokens ?? 0, cacheWriteTokens);
  const { above } = price;
  const rates = above !== null && inputTokens > above.inputTokens ? above.rates : price;
  // An upstream that omits cached tokens from the total must not make the call cheaper.
  const uncachedTokens = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens);
  const perMillion =
    uncachedTokens * rates.inputUsd +
    cacheReadTokens * rates.cacheReadUsd +
    (cacheWriteTokens + longTokens * (LONG_CACHE_FACTOR - 1)) * rates.cacheWriteUsd +
    outputTokens * rates.outputUsd;
  return perMillion / TOKENS_PER_PRICE;
}

function pricesOf({ source, date, rows }: PriceList): ReadonlyMap<string, Price> {
  return new Map(
    rows.flatMap(([models, input, cacheRead, cacheWrite, output, above]) => {
      const rates = ratesOf([input, cacheRead, cacheWrite, output]);
      const price: Price = {
        ...rates,
        above: above === undefined ? null : aboveOf(above),
        source,
        date,
      };
      return models.split(' ').map((model) => [model, price] as const);
    }),
  );
}

function aboveOf([inputTokens, ...rates]: readonly [number, ...RateRow]): Price['above'] {
  return { inputTokens, rates: ratesOf(rates) };
}

function ratesOf([inputUsd, cacheRead, cacheWrite, outputUsd]: RateRow): PriceRates {
  return {
    inputUsd,
    cacheReadUsd: cacheRead ?? inputUsd,
    cacheWriteUsd: cacheWrite ?? inputUsd,
    outputUsd,
  };
}

function configured({ input, output, cache_read, cache_write, tiers }: PriceOverride): Price {
  const rates = ratesOf([input, cache_read ?? null, cache_write ?? null, output]);
  const price = { ...rates, above: null, source: 'configured', date: null };
  return tiers === undefined ? price : { ...price, tiers };
}

function overrideFor(names: readonly string[], overrides: PriceOverrides): PriceOverride | null {
  const entries = Object.entries(overrides).map(
    ([key, price]) => [key.toLowerCase(), price] as const,
  );
  if (entries.length === 0) return null;
  const whole = new Map(entries.filter(([key]) => !key.endsWith('*')));
  for (const name of names) {
    const price = whole.get(name);
    if (price !== undefined) return price;
  }
  const matches = (key: string) => names.some((name) => name.startsWith(key.slice(0, -1)));
  const [longest] = entries
    .filter(([key]) => key.endsWith('*') && matches(key))
    .toSorted(([a], [b]) => b.length - a.length);
  return longest?.[1] ?? null;
}

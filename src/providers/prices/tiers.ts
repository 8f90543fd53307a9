import { TIER_FIELDS, type TierField, type Tiers } from '../../upstream/usage/tiers.ts';
import { listedNames } from './model-name.ts';

/**
 * Tiers of a field, and the multiple of the listed price that they cost: `tiers` and the beginnings of models' names stand in
 * texts with spaces between them. Without models the row is for all. The first row that matches applies.
 */
type TierRow = readonly [field: TierField, tiers: string, factor: number, models?: string];

/** Prices of the tiers of one provider. */
export interface TierList {
  /** Where the figures were published. */
  readonly source: string;
  /** When they were last known to hold, as `YYYY-MM-DD`. */
  readonly date: string;
  readonly rows: readonly TierRow[];
}

/** Tiers that cost the listed price at most, wherever their names are used. */
const COMMON: readonly TierRow[] = [
  ['service_tier', 'auto default standard standard_only on_demand flex batch', 1],
  ['speed', 'auto default standard normal', 1],
  ['latency', 'auto standard', 1],
];

/** Where the tiers of a call are looked up. */
export interface TierPrices {
  readonly list: TierList | null;
  readonly model: string | null;
  /** Factors that an operator has set, by tier. They come before the list. */
  readonly own: Readonly<Record<string, number>>;
}

/** Finds the first tier whose price is not known; null: the prices of all are. */
export function unknownTier(prices: TierPrices, tiers: Tiers): TierField | null {
  return (
    TIER_FIELDS.find((field) => {
      const tier = tiers[field];
      return tier !== undefined && factorOf(prices, field, tier) === null;
    }) ?? null
  );
}

/**
 * Computes the multiple of the listed price that a call costs. A tier whose price is not known counts as the most expensive
 * one that is. `mayAskAny`: so do the fields that are not named.
 */
export function tierFactor(prices: TierPrices, tiers: Tiers, mayAskAny: boolean): number {
  const isAutoListed = !mayAskAny && Object.keys(prices.own).length === 0;
  return TIER_FIELDS.reduce((product, field) => {
    // Most calls name no tier, and cost the listed price.
    if (tiers[field] === undefined && isAutoListed) return product;
    const tier = tiers[field] ?? (mayAskAny ? null : 'auto');
    const factor = tier === null ? null : factorOf(prices, field, tier);
    return product * (factor ?? highestFactor(prices, field));
  }, 1);
}

function highestFactor(prices: TierPrices, field: TierField): number {
  const listed = rowsFor(prices, field).flatMap(([, tiers]) => tiers.split(' '));
  const own = field === 'service_tier' ? Object.values(prices.own) : [];
  return Math.max(1, ...own, ...listed.map((tier) => factorOf(prices, field, tier) ?? 1));
}

function factorOf(prices: TierPrices, field: TierField, tier: string): number | null {
  const own = Object.entries(prices.own).find(([name]) => name.toLowerCase() === tier);
  // What a call without the field costs is said by `auto` of the service tier alone.
  if (own !== undefined && (tier !== 'auto' || field === 'service_tier')) return own[1];
  const row = [...rowsFor(prices, field), ...COMMON].find(
    ([of, tiers]) => of === field && tiers.split(' ').includes(tier),
  );
  return row?.[2] ?? null;
}

function rowsFor({ list, model }: TierPrices, field: TierField): readonly TierRow[] {
  const names = listedNames(model ?? '');
  const isOf = (models: string): boolean =>
    models.split(' ').some((start) => names.some((name) => name.startsWith(start)));
  return (list?.rows ?? []).filter(
    ([of, , , models]) => of === field && (models === undefined || isOf(models)),
  );
}

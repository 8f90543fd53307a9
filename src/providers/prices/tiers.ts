import {
  TIER_FIELDS,
  reportedTier,
  type RequestedTiers,
  type TierField,
  type ServiceTiers,
} from '../../upstream/usage/tiers.ts';
import { TIER_HEADERS, REPORTED_TIER_HEADERS, type TierList, type TierRow } from './tier-lists.ts';
import { listedNames } from './model-name.ts';

/** Tiers that cost at most the listed price at every provider. */
const COMMON: readonly TierRow[] = [
  ['service_tier', 'auto default standard standard_only on_demand flex batch', 1],
  ['speed', 'auto default standard normal', 1],
  ['latency', 'auto standard', 1],
];

export interface TierPrices {
  readonly list: TierList | null;
  readonly model: string | null;
  /** Factors set by an operator, by tier. They take precedence over the list. */
  readonly own: Readonly<Record<string, number>>;
}

/** Finds the first tier whose price is unknown. Returns null if all are known. */
export function unknownTier(prices: TierPrices, tiers: ServiceTiers): TierField | null {
  return (
    TIER_FIELDS.find((field) => {
      const tier = tiers[field];
      return tier !== undefined && factorOf(prices, field, tier) === null;
    }) ?? null
  );
}

/**
 * Computes the multiple of the listed price that a call costs. A tier of unknown price counts as the most expensive
 * known one. `mayAskAny` treats absent fields in the same way.
 */
export function tierFactor(prices: TierPrices, tiers: ServiceTiers, mayAskAny: boolean): number {
  const isAutoListed = !mayAskAny && Object.keys(prices.own).length === 0;
  return TIER_FIELDS.reduce((product, field) => {
    // Most calls name no tier and cost the listed price.
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
  // Only `auto` of the service tier sets the price of calls without the field.
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

/** Adds the tiers that the headers of a call request to those of its body. */
export function withTierHeaders(tiers: RequestedTiers, headers: Headers): RequestedTiers {
  const found = TIER_HEADERS.filter(([header]) => headers.has(header));
  if (found.length === 0) return tiers;
  const asked: Partial<Record<TierField, string>> = { ...tiers.asked };
  const names: Partial<Record<TierField, string>> = { ...tiers.names };
  let { odd } = tiers;
  for (const [header, field] of found) {
    const isSecond = asked[field] !== undefined;
    if (isSecond) odd ??= { field: header, why: 'names a tier in addition to another field' };
    asked[field] = (headers.get(header) ?? '').trim().toLowerCase();
    names[field] = header;
  }
  return { ...tiers, asked, names, odd };
}

export function tiersInAnswer(headers: Headers): ServiceTiers {
  const reported = REPORTED_TIER_HEADERS.map(([header, field]) =>
    reportedTier(field, headers.get(header)),
  );
  return Object.assign({}, ...reported) as ServiceTiers;
}

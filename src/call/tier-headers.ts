import { TIER_HEADERS, TOLD_TIER_HEADERS } from '../providers/prices/lists/tiers.ts';
import { toldTier, type AskedTiers, type TierField, type Tiers } from '../upstream/usage/tiers.ts';

/** Adds the tiers that the headers of a call ask for to those of its body. */
export function withTierHeaders(tiers: AskedTiers, headers: Headers): AskedTiers {
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

/** Reads the tiers that the headers of an answer report. */
export function tiersInAnswer(headers: Headers): Tiers {
  const told = TOLD_TIER_HEADERS.map(([header, field]) => toldTier(field, headers.get(header)));
  return Object.assign({}, ...told) as Tiers;
}

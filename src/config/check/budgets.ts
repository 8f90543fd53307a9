import type { Config, GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { PRICE_LISTS, priceListId } from '../../providers/prices/price-table.ts';
import { namesUpstreams, upstreamsOf } from '../../routing/group-match.ts';
import { hasBudget } from '../../routing/metered.ts';

/** Warns of a budget over upstreams without any price: it refuses calls of unknown price, so there all. */
export function budgetWarnings(
  group: GroupConfig,
  config: Config,
  upstreams: ReadonlyMap<string, Upstream>,
): string[] {
  const { limits } = group;
  if (!hasBudget(limits) || limits.budget_usd.fallback_price !== null) return [];
  const isNamed = namesUpstreams(group);
  // Which upstreams some models are at is not known here.
  if (!isNamed && group.match.models.length > 0) return [];
  const configured = new Set(config.upstreams.map(({ id }) => id));
  const ids = upstreamsOf(group, upstreams)
    .filter((upstream) => !hasPrices(upstream))
    .map(({ id }) => id)
    .filter((id) => isNamed || configured.has(id));
  if (ids.length === 0) return [];
  return [
    `Group "${group.name}": no prices of ${ids.join(', ')} are known, so its budget refuses all calls there; ` +
      'set prices at the upstream, or limits.budget_usd.fallback_price at the group.',
  ];
}

function hasPrices(upstream: Upstream): boolean {
  return Object.keys(upstream.prices).length > 0 || priceListId(upstream) in PRICE_LISTS;
}

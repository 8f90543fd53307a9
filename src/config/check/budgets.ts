import { ticked } from '../field-error.ts';
import type { Config, GroupConfig } from '../../contract/config/config.ts';
import { memberIdOf } from '../../contract/config/members.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { namesUpstreams, upstreamsOf } from '../../routing/group-match.ts';
import { hasBudget, hasPrices, isFree } from '../../routing/metered.ts';

/** Warns of a budget over upstreams without prices. It rejects calls of unknown price, so all calls there. */
export function budgetWarnings(
  group: GroupConfig,
  config: Config,
  upstreams: ReadonlyMap<string, Upstream>,
): string[] {
  if (group.members.length > 0) return memberBudgetWarnings(group, upstreams);
  const { limits } = group;
  if (!lacksPrice(limits)) return [];
  const isNamed = namesUpstreams(group);
  // The upstreams of a model are unknown here.
  if (!isNamed && group.match.models.length > 0) return [];
  const configured = new Set(config.upstreams.map(({ id }) => id));
  const ids = upstreamsOf(group, upstreams)
    .filter((upstream) => !hasPrices(upstream) && !isFree(upstream))
    .map(({ id }) => id)
    .filter((id) => isNamed || configured.has(id));
  if (ids.length === 0) return [];
  return [
    `Group \`${group.name}\`: no prices are known for ${ticked(ids)}, so the budget rejects all calls there. ` +
      'Set `prices` at the upstream, or `limits.budget_usd.fallback_price` at the group.',
  ];
}

/** Warns of the same at members, whose calls run at their own upstreams. */
function memberBudgetWarnings(
  { name, limits, members }: GroupConfig,
  upstreams: ReadonlyMap<string, Upstream>,
): string[] {
  const unpriced = members.flatMap((member) => {
    const upstream = upstreams.get(member.upstream);
    return upstream === undefined || hasPrices(upstream) || isFree(upstream)
      ? []
      : [{ member, id: upstream.id }];
  });
  if (unpriced.length === 0) return [];
  if (lacksPrice(limits)) {
    const ids = [...new Set(unpriced.map(({ id }) => id))];
    return [
      `Group \`${name}\`: no prices are known for ${ticked(ids)}, so the budget rejects all calls there. ` +
        'Set `prices` at the upstream, or `limits.budget_usd.fallback_price` at the group.',
    ];
  }
  return unpriced.flatMap(({ member, id }) =>
    lacksPrice(member.limits)
      ? `Group \`${name}\`: no prices are known for \`${id}\`, so the budget of its member \`${memberIdOf(member)}\` rejects all ` +
        'calls. Set `prices` at the upstream, or `limits.budget_usd.fallback_price` at the member.'
      : [],
  );
}

/** Whether a budget rejects calls of unknown price. */
function lacksPrice(limits: Pick<GroupConfig['limits'], 'budget_usd'>): boolean {
  return hasBudget(limits) && limits.budget_usd.fallback_price === null;
}

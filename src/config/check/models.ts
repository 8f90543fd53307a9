import type { Config, GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { PRICE_LISTS, priceListId } from '../../providers/prices/price-table.ts';
import { globsMayOverlap } from '../../routing/glob.ts';
import { namesUpstreams, upstreamsOf } from '../../routing/group-match.ts';
import { hasMembers, membersOf } from '../../routing/members.ts';
import { memberIdOf } from '../../contract/config/members.ts';
import { hasBudget, hasPrices, isFree } from '../../routing/group-limits.ts';
import { ticked } from '../field-error.ts';

/** Maximum patterns of one document that are checked, because each is compared with a hundred names. */
const PATTERNS_MAX = 1_000;

/** Maximum patterns that one warning lists. */
const LISTED_MAX = 5;

/**
 * Warns of models that none of a group's upstreams is known to have, so that no call would match. Also warns of models
 * that a member is not known to have, so that calls would be refused there.
 */
export function modelWarnings(
  { groups }: Pick<Config, 'groups'>,
  upstreams: ReadonlyMap<string, Upstream>,
): string[] {
  let left = PATTERNS_MAX;
  return groups.flatMap((group) => {
    const { match } = group;
    if (left <= 0) return [];
    if (hasMembers(group)) {
      const members = membersOf(group);
      left -= members.reduce((sum, { models }) => sum + match.models.length + models.size, 0);
      return memberWarnings(group, upstreams);
    }
    if (match.models.length === 0 || !namesUpstreams(group)) return [];
    left -= match.models.length;
    return warningOf(group, upstreamsOf(group, upstreams));
  });
}

function warningOf({ name, match }: GroupConfig, upstreams: readonly Upstream[]): string[] {
  if (upstreams.length === 0 || !upstreams.every(isKnown)) return [];
  const known = upstreams.flatMap((upstream) =>
    namesOf(upstream).flatMap((each) => [each, `${upstream.id}/${each}`]),
  );
  const unknown = match.models.filter(
    (pattern) => !known.some((each) => globsMayOverlap(pattern, each)),
  );
  if (unknown.length === 0) return [];
  const ids = ticked(upstreams.map(({ id }) => id));
  return [
    `Group \`${name}\`: ${ids} ${upstreams.length === 1 ? 'is' : 'are'} not known to have ${listed(unknown)}, ` +
      'so it may match no call. Calls to other upstreams are not counted here. Check `match.models` and `match.upstreams`.',
  ];
}

/** Warns of the same at members. Each is checked alone, with its own names of models. */
function memberWarnings(group: GroupConfig, upstreams: ReadonlyMap<string, Upstream>): string[] {
  const lacking = new Map<string, string[]>();
  for (const { id, config } of membersOf(group)) {
    const upstream = upstreams.get(config.upstream);
    if (upstream === undefined || !isKnown(upstream)) continue;
    const known = namesOf(upstream);
    const requested = [...Object.keys(config.models), ...known];
    const unknown = [
      // Patterns of the group, unless the member has a name of its own for them.
      ...group.match.models.filter(
        (pattern) =>
          !requested.some(
            (each) => globsMayOverlap(pattern, each) || globsMayOverlap(pattern, `*/${each}`),
          ),
      ),
      ...Object.values(config.models).filter(
        (there) => !known.some((each) => globsMayOverlap(there, each)),
      ),
    ];
    if (unknown.length === 0) continue;
    const what = listed([...new Set(unknown)]);
    lacking.set(what, [...(lacking.get(what) ?? []), id]);
  }
  return [...lacking].map(
    ([what, ids]) =>
      `Group \`${group.name}\`: the upstream of its ${ids.length === 1 ? 'member' : 'members'} ${ticked(ids)} is not ` +
      `known to have ${what}, so it may refuse such calls. Map the name in \`models\` of the member.`,
  );
}

/** Whether the models of an upstream are known. Those of resellers and own servers are not. */
function isKnown({ models }: Upstream): boolean {
  return models.length > 0;
}

function listed(models: readonly string[]): string {
  const rest = models.length > LISTED_MAX ? ` and ${models.length - LISTED_MAX} more` : '';
  return `${ticked(models.slice(0, LISTED_MAX))}${rest}`;
}

/** Returns names and patterns of the models that an upstream is known to have. */
function namesOf(upstream: Upstream): string[] {
  const { models, aliases, prices } = upstream;
  const priced = PRICE_LISTS[priceListId(upstream)]?.rows.flatMap(([names]) => names.split(' '));
  return [
    ...models,
    ...Object.entries(aliases).flat(),
    ...Object.keys(prices),
    // A listed name also matches its dated snapshots.
    ...(priced ?? []).map((name) => `${name}*`),
  ];
}

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

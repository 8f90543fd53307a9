import type { Config, GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { PRICE_LISTS, priceListId } from '../../providers/prices/price-table.ts';
import { globsMayOverlap } from '../../routing/glob.ts';
import { namesUpstreams, upstreamsOf } from '../../routing/group-match.ts';

/** Maximum patterns of one document that are looked at: each is compared with a hundred names. */
const PATTERNS_MAX = 1_000;

/** Maximum patterns that one warning lists. */
const LISTED_MAX = 5;

/** Warns of models that none of a group's upstreams has, as far as is known: no call would ever match. */
export function modelWarnings(
  { groups }: Pick<Config, 'groups'>,
  upstreams: ReadonlyMap<string, Upstream>,
): string[] {
  let left = PATTERNS_MAX;
  return groups.flatMap((group) => {
    if (group.match.models.length === 0 || !namesUpstreams(group) || left <= 0) return [];
    left -= group.match.models.length;
    return warningOf(group, upstreamsOf(group, upstreams));
  });
}

function warningOf({ name, match }: GroupConfig, upstreams: readonly Upstream[]): string[] {
  // Of resellers, and of what somebody runs, nobody knows what they have.
  if (upstreams.length === 0 || upstreams.some(({ models }) => models.length === 0)) return [];
  const known = upstreams.flatMap((upstream) =>
    namesOf(upstream).flatMap((each) => [each, `${upstream.id}/${each}`]),
  );
  const unknown = match.models.filter(
    (pattern) => !known.some((each) => globsMayOverlap(pattern, each)),
  );
  if (unknown.length === 0) return [];
  const rest = unknown.length > LISTED_MAX ? ` and ${unknown.length - LISTED_MAX} more` : '';
  const listed = unknown.slice(0, LISTED_MAX).map((each) => `"${each}"`);
  const ids = upstreams.map(({ id }) => id).join(', ');
  return [
    `Group "${name}": ${ids} ${upstreams.length === 1 ? 'is' : 'are'} not known to have ${listed.join(', ')}${rest}, ` +
      'so that perhaps no call ever matches; a call to another upstream is not counted here.',
  ];
}

/** Lists names and patterns of the models that an upstream is known to have. */
function namesOf(upstream: Upstream): string[] {
  const { models, aliases, prices } = upstream;
  const listed = PRICE_LISTS[priceListId(upstream)]?.rows.flatMap(([names]) => names.split(' '));
  return [
    ...models,
    ...Object.entries(aliases).flat(),
    ...Object.keys(prices),
    // A listed name stands for its dated snapshots too.
    ...(listed ?? []).map((name) => `${name}*`),
  ];
}

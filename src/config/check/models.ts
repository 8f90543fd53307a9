import { ticked } from '../field-error.ts';
import type { Config, GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { PRICE_LISTS, priceListId } from '../../providers/prices/price-table.ts';
import { globsMayOverlap } from '../../routing/glob.ts';
import { namesUpstreams, upstreamsOf } from '../../routing/group-match.ts';
import { hasMembers, membersOf } from '../../routing/members.ts';

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

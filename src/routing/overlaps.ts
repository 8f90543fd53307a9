import type { Config, GroupConfig } from '../contract/config/config.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { compileGlobs, globsMayOverlap } from './glob.ts';
import { matchingGroups } from './implied-groups.ts';
import { hasMembers, hasRouteIn } from './members.ts';
import { METHODS_WITH_BODY } from '../contract/http.ts';
import { baseUrlGlobs, narrowFirst, upstreamsOf } from './group-match.ts';

type GroupMatch = GroupConfig['match'];

/** Names of two groups that the same call may match, the narrower one first. */
export type Overlap = readonly [narrow: string, wide: string];

/** The part of a group that decides which calls it takes, prepared for comparison. */
interface Comparable {
  readonly name: string;
  readonly match: GroupMatch;
  /**
   * Whether it matches by models, upstreams or base URLs, or has members. Such a group replaces the automatic group.
   */
  readonly isTargeted: boolean;
}

/**
 * Returns the pairs of groups that the same call may match, so that it needs slots in both. Only patterns are compared,
 * without upstreams and their aliases. One case is left out because it is always possible and rarely meant: two groups
 * that take everything of two different upstreams (`openai/*`, `anthropic/*`), which a router with such model names
 * matches both.
 */
export function overlaps(config: Pick<Config, 'groups'>): Overlap[] {
  const groups = comparable(config);
  return groups.flatMap((narrow, index) =>
    groups
      .slice(index + 1)
      .filter((wide) => mayMeet(narrow.match, wide.match))
      .map((wide): Overlap => [narrow.name, wide.name]),
  );
}

/** Returns the other groups that a call of group `name` may also match, the narrowest first. */
export function meeting(config: Pick<Config, 'groups'>, name: string): string[] {
  const groups = comparable(config);
  const own = groups.find((group) => group.name === name);
  if (own === undefined) return [];
  const others = groups.filter((group) => group !== own && mayMeet(own.match, group.match));
  return others.map((group) => group.name);
}

/**
 * Returns the automatic groups that may lose calls to a group for models, upstreams or base URLs, which replaces them.
 */
export function replacedBy(
  group: GroupConfig,
  automatic: readonly string[],
  upstreams: ReadonlyMap<string, Upstream>,
): string[] {
  const [own] = comparable({ groups: [group] });
  if (own === undefined || !own.isTargeted) return [];
  const hasRoute = hasRouteIn(group, upstreams);
  const reached = new Map(
    upstreamsOf(group, upstreams)
      .filter((each) => hasRoute(each, null))
      .map((each) => [each.id, each]),
  );
  return automatic.filter((name) => {
    const [id = '', modelPrefix] = name.slice(AUTO_PREFIX.length).split(/\/(.*)/s);
    const upstream = reached.get(id);
    if (upstream === undefined) return false;
    const models = modelPrefix === undefined ? [...upstream.models] : [`${modelPrefix}*`];
    return mayMeet(own.match, { ...NOTHING_NAMED, upstreams: [id], models });
  });
}

const NOTHING_NAMED: GroupMatch = {
  models: [],
  upstreams: [],
  base_urls: [],
  keys: [],
  operations: [],
  paths: [],
  methods: [],
  references: 'refuse',
};

/** Maximum compared pairs before the search for calls with too many groups ends. */
const COMPARISONS_MAX = 1_000_000;

/**
 * Returns groups that one call may match, if they are more than `most`. The automatic group counts unless one of them
 * replaces it. Groups are compared pair by pair, so the result may contain groups that never match one call together.
 * null if there are none, or if there are too many pairs.
 */
export function callersAtOnce(
  config: Pick<Config, 'groups'>,
  most: number,
): readonly string[] | null {
  let left = COMPARISONS_MAX;
  const meets = (a: Comparable, b: Comparable): boolean => {
    left -= 1;
    return left >= 0 && mayMeet(a.match, b.match);
  };
  const search = (
    chosen: readonly Comparable[],
    rest: readonly Comparable[],
  ): readonly Comparable[] | null => {
    const automatic = chosen.some(({ isTargeted }) => isTargeted) ? 0 : 1;
    if (chosen.length + automatic > most) return chosen;
    for (const [index, next] of rest.entries()) {
      if (left <= 0 || chosen.length + rest.length - index + 1 <= most) return null;
      const later = rest.slice(index + 1).filter((other) => meets(next, other));
      const found = search([...chosen, next], later);
      if (found !== null) return found;
    }
    return null;
  };
  return search([], comparable(config))?.map(({ name }) => name) ?? null;
}

/** Prepares groups once, because a thousand groups have half a million pairs. */
function comparable({ groups }: Pick<Config, 'groups'>): Comparable[] {
  return matchingGroups(groups)
    .toSorted(narrowFirst)
    .map(({ name, match, members }) => ({
      name,
      match: { ...match, base_urls: baseUrlGlobs(match.base_urls) },
      isTargeted:
        match.models.length + match.upstreams.length + match.base_urls.length > 0 ||
        hasMembers({ members }),
    }));
}

function mayMeet(a: GroupMatch, b: GroupMatch): boolean {
  return (
    fieldsMeet(a.upstreams, b.upstreams) &&
    fieldsMeet(a.base_urls, b.base_urls) &&
    fieldsMeet(a.keys, b.keys) &&
    fieldsMeet(a.operations, b.operations) &&
    pathsMeet(a, b) &&
    (fieldsMeet(a.models, b.models) || qualifiedMeet(a, b) || qualifiedMeet(b, a))
  );
}

function pathsMeet(
  { paths: a, methods: ofA }: GroupMatch,
  { paths: b, methods: ofB }: GroupMatch,
): boolean {
  if (a.length === 0 || b.length === 0) return true;
  const [one, two] = [ofA, ofB].map((all) => (all.length === 0 ? METHODS_WITH_BODY : all));
  return fieldsMeet(a, b) && one?.some((method) => two?.includes(method)) === true;
}

function fieldsMeet(a: readonly string[], b: readonly string[]): boolean {
  if (a.length === 0 || b.length === 0) return true;
  return a.some((one) => b.some((two) => globsMayOverlap(one, two)));
}

/** Whether a pattern `upstream/model` of `a` matches a model that `b` matches without the upstream. */
function qualifiedMeet(a: GroupMatch, b: GroupMatch): boolean {
  return a.models.some((pattern) => {
    const slash = pattern.indexOf('/');
    if (slash === -1) return false;
    const [upstream, model] = [pattern.slice(0, slash), pattern.slice(slash + 1)];
    // A star before the slash may match any upstream, and also a part of the model.
    if (upstream.includes('*')) return b.models.some((two) => globsMayOverlap(pattern, `*/${two}`));
    if (b.upstreams.length > 0 && !compileGlobs(b.upstreams)(upstream)) return false;
    const takesAll = /^\*+$/.test(model);
    return b.models.some((two) => !(takesAll && two.includes('/')) && globsMayOverlap(model, two));
  });
}

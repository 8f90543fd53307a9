import type { Config, GroupConfig } from '../contract/config.ts';
import { compileGlobs, globsMayOverlap } from './glob.ts';
import { baseUrlGlobs, narrowFirst } from './group-match.ts';

type Match = GroupConfig['match'];

/** Two groups that the same call may match, and which of them takes it. */
export interface Overlap {
  readonly groups: readonly [string, string];
  readonly winner: string;
}

/**
 * Finds the pairs of groups that the same call may match. It judges by the patterns alone, without
 * the upstreams and their aliases, and leaves out one case that is always possible and rarely
 * meant: two that take everything of two different upstreams (`openai/*`, `anthropic/*`), which
 * meet where a router has such names for its own models. `alsoMatched` of a placement tells of it.
 */
export function overlaps(config: Pick<Config, 'groups'>): Overlap[] {
  // Prepared once: there are half a million pairs of a thousand groups.
  const groups = config.groups.toSorted(narrowFirst).map(({ name, match }) => ({
    name,
    match: { ...match, base_urls: baseUrlGlobs(match.base_urls) },
  }));
  return groups.flatMap((narrow, index) =>
    groups
      .slice(index + 1)
      .filter((wide) => mayMeet(narrow.match, wide.match))
      .map((wide): Overlap => ({ groups: [narrow.name, wide.name], winner: narrow.name })),
  );
}

function mayMeet(a: Match, b: Match): boolean {
  return (
    fieldsMeet(a.upstreams, b.upstreams) &&
    fieldsMeet(a.base_urls, b.base_urls) &&
    fieldsMeet(a.keys, b.keys) &&
    fieldsMeet(a.operations, b.operations) &&
    (fieldsMeet(a.models, b.models) || qualifiedMeet(a, b) || qualifiedMeet(b, a))
  );
}

function fieldsMeet(a: readonly string[], b: readonly string[]): boolean {
  if (a.length === 0 || b.length === 0) return true;
  return a.some((one) => b.some((two) => globsMayOverlap(one, two)));
}

/** Whether a pattern `upstream/model` of `a` means a model that `b` knows without the upstream. */
function qualifiedMeet(a: Match, b: Match): boolean {
  return a.models.some((pattern) => {
    const slash = pattern.indexOf('/');
    if (slash === -1) return false;
    const [upstream, model] = [pattern.slice(0, slash), pattern.slice(slash + 1)];
    // A star before the slash may stand for any upstream, and for a part of the model besides.
    if (upstream.includes('*')) return b.models.some((two) => globsMayOverlap(pattern, `*/${two}`));
    if (b.upstreams.length > 0 && !compileGlobs(b.upstreams)(upstream)) return false;
    const takesAll = /^\*+$/.test(model);
    return b.models.some((two) => !(takesAll && two.includes('/')) && globsMayOverlap(model, two));
  });
}

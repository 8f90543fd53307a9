import type { Config } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { compileGroups } from '../../routing/group-match.ts';
import { hasMembers, membersOf, secretOf } from '../../routing/members.ts';
import { compileCanonical, modelNames } from '../../routing/model-names.ts';
import { hasSibling } from '../../routing/sibling-path.ts';

/**
 * Returns a test for whether calls to an upstream, with the name of a model there or any (null), may run at members of
 * a group that have an operator's key or need none.
 */
export function keysOfMembers(
  { groups }: Pick<Config, 'groups'>,
  upstreams: ReadonlyMap<string, Upstream>,
): (to: Upstream, model: string | null) => boolean {
  const keyed = compileGroups(groups.filter(hasMembers)).map((group) => {
    const places = membersOf(group.config).flatMap((member) => {
      const upstream = upstreams.get(member.config.upstream);
      if (upstream === undefined) return [];
      return upstream.isKeyless || secretOf(member, upstream) !== null ? [upstream] : [];
    });
    return { group, places };
  });
  return (to, model) =>
    keyed.some(
      ({ group, places }) =>
        group.matchesUpstream(to) &&
        (model === null ||
          group.matchesModel === null ||
          group.matchesModel(modelNames(to, model, compileCanonical(to)(model)))) &&
        places.some((place) => hasSibling(to, place, null)),
    );
}

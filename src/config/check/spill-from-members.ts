import type { GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { globsMayOverlap } from '../../routing/glob.ts';
import { compileGroups, upstreamsOf } from '../../routing/group-match.ts';
import { compileCanonical, modelNames } from '../../routing/model-names.ts';
import { dialectOf } from './members.ts';

/**
 * Tells why calls of a group with members cannot go on to an upstream, under the name of a model there (null: their own),
 * if they cannot: it is of another dialect, or calls to it are in the group as well. What such a group knows of its
 * members, its limits and its pauses hold for all calls that it matches, so the way out of it leads to another one.
 */
export function spillFromMembers(
  group: GroupConfig,
  upstreams: ReadonlyMap<string, Upstream>,
): (to: Upstream, model: string | null) => string | null {
  const { members } = group;
  const dialect = dialectOf(members, upstreams);
  return (to, model) => {
    if (dialect !== null && to.dialect !== dialect) {
      return `speaks ${to.dialect}, and the members speak ${dialect}, so that their calls cannot go there`;
    }
    const same = members.findIndex(
      ({ upstream, secret }) => upstream === to.id && (secret ?? to.secret) === to.secret,
    );
    if (same !== -1 && model === null) {
      return `is where members[${same}] is already: calls come here when none of them has room`;
    }
    if (!matches(group, to, model, upstreams)) return null;
    const what = model === null ? 'calls' : `calls of the model "${model}"`;
    return (
      `cannot be where they go on to: ${what} there belong to this group as well. Name it as a member instead, or ` +
      'an upstream or a model that match does not take'
    );
  };
}

/** Tells whether all calls to an upstream, under the name of a model there or under their own, are in a group that they came from. */
function matches(
  group: GroupConfig,
  to: Upstream,
  model: string | null,
  upstreams: ReadonlyMap<string, Upstream>,
): boolean {
  const [compiled] = compileGroups([group]);
  if (compiled?.matchesUpstream(to) !== true) return false;
  if (compiled.matchesModel === null) return true;
  if (model !== null) {
    return compiled.matchesModel(modelNames(to, model, compileCanonical(to)(model)));
  }
  const from = upstreamsOf(group, upstreams);
  const mayName = (pattern: string, { id }: Upstream): boolean =>
    globsMayOverlap(pattern, `${id}/*`);
  return group.match.models.every((pattern) => {
    if (!pattern.includes('/') || mayName(pattern, to)) return true;
    // What stands before the slash is no upstream that the calls may come from, so it is a part of the model.
    return !from.some((each) => mayName(pattern, each));
  });
}

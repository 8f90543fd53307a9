import type { GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { globsMayOverlap } from '../../routing/glob.ts';
import { compileGroups, upstreamsOf } from '../../routing/group-match.ts';
import { compileCanonical, modelNames } from '../../routing/model-names.ts';
import { dialectOf } from './members.ts';

/**
 * Returns a function that explains why calls of a group with members cannot spill to an upstream, with the name of a
 * model there (null: their own). It returns null if they can. The upstream must have the same dialect, and calls to it
 * must not match the group again, because the limits and pauses of such a group apply to all calls that it matches.
 */
export function spillFromMembers(
  group: GroupConfig,
  upstreams: ReadonlyMap<string, Upstream>,
): (to: Upstream, model: string | null) => string | null {
  const { members } = group;
  const dialect = dialectOf(members, upstreams);
  return (to, model) => {
    if (dialect !== null && to.dialect !== dialect) {
      return `speaks ${to.dialect}, and the members speak ${dialect}, so their calls cannot spill there`;
    }
    const same = members.findIndex(
      ({ upstream, secret }) => upstream === to.id && (secret ?? to.secret) === to.secret,
    );
    if (same !== -1 && model === null) {
      return `is the same as members[${same}], and calls spill only if no member has room; name another upstream`;
    }
    if (!matches(group, to, model, upstreams)) return null;
    const what = model === null ? 'calls' : `calls of the model \`${model}\``;
    return (
      `cannot be a spill target, because ${what} there belong to this group too. Add it as a member instead, or name ` +
      'an upstream or a model that `match` does not include'
    );
  };
}

/** Whether all calls to an upstream, with the name of a model there or their own, match the group. */
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
    // The text before the slash is not an upstream of these calls, so it is part of the model.
    return !from.some((each) => mayName(pattern, each));
  });
}

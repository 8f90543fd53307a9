import type { Config, GroupConfig } from '../../contract/config/config.ts';
import type { OnSaturated } from '../../contract/config/members.ts';
import { upstreamNamedBy } from '../../routing/implied-groups.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import {
  namesUpstreams,
  upstreamsOf,
  compileGroups,
  compileCanonical,
  modelNames,
} from '../../routing/group-match.ts';
import { hasMembers, membersOf, secretOf, hasSibling } from '../../routing/members.ts';
import { globsMayOverlap } from '../../routing/glob.ts';
import { quoteName, ticked, type FieldError } from '../field-error.ts';
import { dialectOf } from './members.ts';

/**
 * Finds entries of `spill_to` to which calls cannot or must not spill. An upstream without a key of the operator or of
 * a member would receive callers' own keys for another upstream, unless it needs no key.
 *
 * A group without upstreams takes calls to all of them, so one with a suitable dialect is enough. Each automatic group
 * belongs to one upstream.
 */
export function spillErrors(
  { groups, auto_groups: automatic }: Pick<Config, 'groups' | 'auto_groups'>,
  upstreams: ReadonlyMap<string, Upstream>,
): FieldError[] {
  const to = { upstreams, hasMembersKey: keysOfMembers({ groups }, upstreams) };
  return [
    ...groups.flatMap((group, index) => {
      const from = {
        matched: upstreamsOf(group, upstreams),
        isNamed: namesUpstreams(group),
        ofMembers: hasMembers(group) ? spillFromMembers(group, upstreams) : null,
      };
      return errorsOf(group.on_saturated, `groups[${index}].on_saturated`, from, to);
    }),
    ...automatic.flatMap(({ name, on_saturated: does = 'queue' }, index) => {
      const upstream = upstreamNamedBy(name, upstreams);
      if (upstream === null) return [];
      const from = { matched: [upstream], isNamed: true, ofMembers: null };
      return errorsOf(does, `auto_groups[${index}].on_saturated`, from, to);
    }),
  ];
}

interface SpillSource {
  readonly matched: readonly Upstream[];
  readonly isNamed: boolean;
  /** Returns why calls cannot spill from the group's members. null if it has none. */
  readonly ofMembers: ReturnType<typeof spillFromMembers> | null;
}

/** The upstreams to which they may spill. */
interface SpillTarget {
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly hasMembersKey: ReturnType<typeof keysOfMembers>;
}

function errorsOf(
  onSaturated: OnSaturated,
  path: string,
  { matched, isNamed, ofMembers }: SpillSource,
  { upstreams, hasMembersKey }: SpillTarget,
): FieldError[] {
  if (typeof onSaturated === 'string') return [];
  return onSaturated.spill_to.flatMap((entry, index) => {
    const [id, model] = typeof entry === 'string' ? [entry, null] : [entry.upstream, entry.model];
    const inEntry = typeof entry === 'string' ? '' : '.upstream';
    const at = `${path}.spill_to[${index}]${inEntry}`;
    const error = (message: string) => [{ path: at, message: `${quoteName(id)} ${message}` }];
    const to = upstreams.get(id);
    if (to === undefined) return error('is not an enabled upstream');
    if (to.secret === null && !to.isKeyless && !hasMembersKey(to, model)) {
      return error(
        "has no key of the operator, so callers' own keys for another upstream would be sent there; " +
          'set `auth.secret` at the upstream, or `auth: none` if it needs no key, or route calls there to members with keys',
      );
    }
    if (ofMembers !== null) {
      const message = ofMembers(to, model);
      return message === null ? [] : error(message);
    }
    const others = matched.filter((from) => from !== to);
    if (matched.length === 1 && others.length === 0 && model === null) {
      return error('is already the upstream of this group; name another upstream, or a model');
    }
    const strangers = others.filter((from) => !speaksAlike(from, to));
    const isStrange = isNamed
      ? strangers.length > 0
      : others.length > 0 && strangers.length === others.length;
    if (!isStrange) return [];
    const names = isNamed ? ticked(strangers.map(({ id: name }) => name)) : 'the others';
    return error(`does not speak the dialect of ${names}, so their calls cannot spill there`);
  });
}

/** Whether some calls to one upstream make sense at the other. */
function speaksAlike(one: Upstream, other: Upstream): boolean {
  if (one.dialect === other.dialect) return true;
  const bothOpenai = one.openaiAt !== null && other.openaiAt !== null;
  return bothOpenai || (one.anthropicAt !== null && other.anthropicAt !== null);
}

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

import type { Config } from '../../contract/config/config.ts';
import type { OnSaturated } from '../../contract/config/reactions.ts';
import { upstreamNamedBy } from '../../routing/auto-groups.ts';
import { quoteName, ticked, type FieldError } from '../field-error.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { namesUpstreams, upstreamsOf } from '../../routing/group-match.ts';
import { hasMembers } from '../../routing/members.ts';
import { keysOfMembers } from './keys-of-members.ts';
import { spillFromMembers } from './spill-from-members.ts';

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

import { durationMs } from '../../contract/config/duration.ts';
import { memberIdOf, type MemberConfig } from '../../contract/config/members.ts';
import type { Config, GroupConfig } from '../../contract/config/config.ts';
import type { Dialect } from '../../contract/dialect.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { compileGlobs, globsMayOverlap } from '../../routing/glob.ts';
import {
  baseUrlGlobs,
  baseUrlsOf,
  namesUpstreams,
  upstreamsOf,
} from '../../routing/group-match.ts';
import { overlaps } from '../../routing/overlaps.ts';
import { formatPath, type FieldError } from '../field-error.ts';
import { unknownUpstream } from './unknown-upstream.ts';

type Upstreams = ReadonlyMap<string, Upstream>;

/** Maximum pairs of groups that are warned of one by one. */
const PAIRS_MAX = 5;

/** Finds members where no call could run, or that could not be told apart, and what means nothing beside them. */
export function memberErrors(group: GroupConfig, path: string, upstreams: Upstreams): FieldError[] {
  const { members, affinity } = group;
  if (members.length === 0) {
    if (affinity === null) return [];
    return [{ path: `${path}.affinity`, message: 'means nothing without members' }];
  }
  return [
    ...placeErrors(members, `${path}.members`, upstreams),
    ...idErrors(members, `${path}.members`, upstreams),
    ...members.flatMap((member, index) =>
      modelErrors(member, `${path}.members[${index}]`, group, upstreams),
    ),
    ...members.flatMap((member, index) => sameNameErrors(member, `${path}.members[${index}]`)),
    ...matchErrors(group, `${path}.match`, upstreams),
    ...partitionErrors(group, path),
  ];
}

/** Finds members at no upstream, or at one that speaks otherwise than the first: nothing is translated. */
function placeErrors(
  members: readonly MemberConfig[],
  path: string,
  upstreams: Upstreams,
): FieldError[] {
  const dialect = dialectOf(members, upstreams);
  const first = members.findIndex(({ upstream }) => upstreams.has(upstream));
  const other = members.findIndex(({ upstream }) => {
    const own = upstreams.get(upstream)?.dialect;
    return own !== undefined && own !== dialect;
  });
  return members.flatMap(({ upstream }, index) => {
    const at = `${path}[${index}].upstream`;
    const found = upstreams.get(upstream);
    if (found === undefined) {
      return [{ path: at, message: unknownUpstream(upstream, upstreams.keys()) }];
    }
    if (index !== other) return [];
    const message =
      `speaks ${found.dialect}, and members[${first}] speaks ${dialect}: all members of a group have one dialect, ` +
      'because nothing is translated';
    return [{ path: at, message }];
  });
}

/** Takes the dialect that the members of a group have in common. Null: none of them has an upstream. */
export function dialectOf(members: readonly MemberConfig[], upstreams: Upstreams): Dialect | null {
  const [first] = members.flatMap(({ upstream }) => upstreams.get(upstream) ?? []);
  return first?.dialect ?? null;
}

/** Finds members that are one place under two names, or two places under one. */
function idErrors(
  members: readonly MemberConfig[],
  path: string,
  upstreams: Upstreams,
): FieldError[] {
  const places = new Map<string, number>();
  const ids = new Map<string, number>();
  return members.flatMap((member, index) => {
    const { upstream } = member;
    const secret = member.secret ?? upstreams.get(upstream)?.secret ?? null;
    const place = `${upstream} ${secret ?? ''}`;
    const id = memberIdOf(member);
    const [samePlace, sameId] = [places.get(place), ids.get(id)];
    if (samePlace === undefined) places.set(place, index);
    if (sameId === undefined) ids.set(id, index);
    if (samePlace !== undefined) {
      const what = secret === null ? 'without a secret' : `with the secret ${secret}`;
      const message =
        `is where members[${samePlace}] is already, ${what}; one place is one member, and another deployment of ` +
        'one account needs an upstream of its own';
      const field = member.secret === undefined ? 'upstream' : 'secret';
      return [{ path: `${path}[${index}].${field}`, message }];
    }
    if (sameId === undefined) return [];
    const message = `makes this member "${id}", as members[${sameId}] is; give it a name of its own`;
    return [{ path: `${path}[${index}].name`, message }];
  });
}

/** Finds models that a member has names for, and that no call of the group ever asks for. */
function modelErrors(
  { models }: MemberConfig,
  path: string,
  { match }: GroupConfig,
  upstreams: Upstreams,
): FieldError[] {
  if (match.models.length === 0) return [];
  const isMatched = compileGlobs(match.models);
  const qualified = match.models.filter((pattern) => pattern.includes('/'));
  return Object.keys(models).flatMap((model) => {
    const names = [
      model,
      ...[...upstreams.values()].flatMap(({ aliases }) => aliases[model] ?? []),
    ];
    const isAsked = names.some(
      (name) =>
        isMatched(name) || qualified.some((pattern) => globsMayOverlap(pattern, `*/${name}`)),
    );
    if (isAsked) return [];
    const message =
      'is a model that no pattern of match.models matches, so that no call here asks for it';
    return [{ path: `${path}.${formatPath(['models', model])}`, message }];
  });
}

/** Finds models that a member has two names for: those of callers count in any case. */
function sameNameErrors({ models }: MemberConfig, path: string): FieldError[] {
  const seen = new Map<string, string>();
  return Object.keys(models).flatMap((model) => {
    const lower = model.toLowerCase();
    const same = seen.get(lower);
    seen.set(lower, model);
    if (same === undefined) return [];
    const message = `is the model "${same}" in other letters, and a model has one name at a member`;
    return [{ path: `${path}.${formatPath(['models', model])}`, message }];
  });
}

/** Finds upstreams that a group is for, and whose calls make no sense at its members. */
function matchErrors(
  { match, members }: GroupConfig,
  path: string,
  upstreams: Upstreams,
): FieldError[] {
  const dialect = dialectOf(members, upstreams);
  if (dialect === null) return [];
  const all = [...upstreams.values()];
  const strange = (at: string, named: readonly Upstream[]): FieldError[] => {
    const [first] = named;
    if (first === undefined || named.some((each) => each.dialect === dialect)) return [];
    const message = `speaks ${first.dialect}, and the members speak ${dialect}, so that its calls cannot go there`;
    return [{ path: at, message }];
  };
  return [
    ...match.upstreams.flatMap((pattern, index) => {
      const matches = compileGlobs([pattern]);
      const named = all.filter(({ id }) => matches(id));
      return strange(`${path}.upstreams[${index}]`, named);
    }),
    ...match.base_urls.flatMap((pattern, index) => {
      const matches = compileGlobs(baseUrlGlobs([pattern]));
      const named = all.filter((upstream) => baseUrlsOf(upstream).some(matches));
      return strange(`${path}.base_urls[${index}]`, named);
    }),
  ];
}

/** Splits by where a call goes, which is chosen when it is granted, in the pool that the split would have to choose. */
const BY_PLACE = new Set(['api_key', 'upstream', 'base_url']);

function partitionErrors({ partition_by: by }: GroupConfig, path: string): FieldError[] {
  return by.flatMap((each, index) => {
    if (!BY_PLACE.has(each)) return [];
    const message = `"${each}" cannot split a group with members: which of them a call goes to is chosen within it`;
    return [{ path: `${path}.partition_by[${index}]`, message }];
  });
}

/** Warns of what members make of a configuration that may not be expected. */
export function memberWarnings(config: Config, upstreams: Upstreams): string[] {
  const groups = config.groups.filter(({ members }) => members.length > 0);
  return [
    ...groups.flatMap(ownWarnings),
    ...groups.flatMap((group) => noKeyWarnings(group, upstreams)),
    ...groups.flatMap((group) => elsewhereWarnings(group, config, upstreams)),
    ...overlaps({ groups })
      .slice(0, PAIRS_MAX)
      .map(
        ([narrow, wide]) =>
          `One call may match "${narrow}" and "${wide}", which both have members: it would be refused with ` +
          'too_many_groups, because it can go to one place only.',
      ),
    ...keyWarnings(groups, config, upstreams),
  ];
}

function ownWarnings({ name, members, affinity, queue }: GroupConfig): string[] {
  const warnings: string[] = [];
  if (members.every(({ enabled }) => !enabled)) {
    warnings.push(`Group "${name}": every member is switched off, so that no call is granted.`);
  }
  const isLong =
    affinity !== null &&
    affinity.by !== 'none' &&
    members.length > 1 &&
    durationMs(affinity.wait) >= queue.timeout_ms;
  if (isLong) {
    warnings.push(
      `Group "${name}": affinity.wait is not shorter than queue.timeout_ms, so that a call whose member is full may ` +
        'be refused with queue_timeout while another has room.',
    );
  }
  return warnings;
}

/** Warns of members whose calls go out without a key: what callers bring goes to none. */
function noKeyWarnings({ name, members }: GroupConfig, upstreams: Upstreams): string[] {
  const bare = members.filter(({ upstream: id, secret }) => {
    const upstream = upstreams.get(id);
    return secret === undefined && upstream?.secret === null && !upstream.isKeyless;
  });
  if (bare.length === 0) return [];
  return [
    `Group "${name}": calls go out without a key at ${bare.map(memberIdOf).join(', ')}. Name a secret at the member or ` +
      'its upstream, or set auth: none there if it takes no key.',
  ];
}

/** Warns of groups that are for a member's upstream, and do not count what the members' group sends there. */
function elsewhereWarnings(group: GroupConfig, config: Config, upstreams: Upstreams): string[] {
  const from = upstreamsOf(group, upstreams);
  return config.groups.flatMap((other) => {
    if (other === group || !namesUpstreams(other)) return [];
    const counted = new Set(upstreamsOf(other, upstreams).map(({ id }) => id));
    const ids = [...new Set(group.members.map(({ upstream }) => upstream))];
    const shared = ids.filter((id) => counted.has(id));
    // Whatever comes to the group was sent to an upstream of the other.
    if (shared.length === 0 || from.every(({ id }) => counted.has(id))) return [];
    return [
      `Group "${other.name}" is for ${shared.join(', ')}, and calls that members of "${group.name}" take there are not ` +
        'counted in it, unless they were sent there: a call belongs to the groups of the upstream that it is sent to.',
    ];
  });
}

/** Warns of members that no caller can use: their keys go out behind a gateway key only. */
function keyWarnings(
  groups: readonly GroupConfig[],
  { keys }: Config,
  upstreams: Upstreams,
): string[] {
  if (keys.length > 0) return [];
  const withKeys = groups.filter(({ members }) =>
    members.some(
      ({ upstream, secret }) => (secret ?? upstreams.get(upstream)?.secret ?? null) !== null,
    ),
  );
  if (withKeys.length === 0) return [];
  const names = withKeys.map(({ name }) => `"${name}"`).join(', ');
  return [
    `Keys of members go out behind a gateway key only, and keys lists none: no call goes to those of ${names} that have one.`,
  ];
}

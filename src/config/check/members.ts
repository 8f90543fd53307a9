import { durationMs, memberIdOf, type MemberConfig } from '../../contract/config/members.ts';
import type { Config, GroupConfig } from '../../contract/config/config.ts';
import type { Dialect } from '../../contract/http.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { compileGlobs, globsMayOverlap } from '../../routing/glob.ts';
import {
  baseUrlGlobs,
  baseUrlsOf,
  namesUpstreams,
  upstreamsOf,
} from '../../routing/group-match.ts';
import { overlaps } from '../../routing/overlaps.ts';
import { formatPath, ticked, type FieldError } from '../field-error.ts';
import { unknownUpstream } from './upstreams.ts';

type Upstreams = ReadonlyMap<string, Upstream>;

/** Maximum pairs of groups with a warning each. */
const PAIRS_MAX = 5;

/** Finds members where no call could run or that cannot be distinguished, and fields without effect. */
export function memberErrors(group: GroupConfig, path: string, upstreams: Upstreams): FieldError[] {
  const { members, affinity } = group;
  if (members.length === 0) {
    if (affinity === null) return [];
    return [{ path: `${path}.affinity`, message: 'has no effect without `members`' }];
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

/** Finds members without an upstream, or with another dialect than the first. Bodies are not translated. */
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
      `speaks ${found.dialect}, and members[${first}] speaks ${dialect}; all members of a group need the same dialect, ` +
      'because Headgate does not translate bodies';
    return [{ path: at, message }];
  });
}

/** Returns the dialect that the members of a group share. null if none of them has an upstream. */
export function dialectOf(members: readonly MemberConfig[], upstreams: Upstreams): Dialect | null {
  const [first] = members.flatMap(({ upstream }) => upstreams.get(upstream) ?? []);
  return first?.dialect ?? null;
}

/** Finds two members at the same upstream with the same secret, and members with the same id. */
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
        `is the same as members[${samePlace}], ${what}; an upstream with one key is one member. For another deployment of ` +
        'the account, add an upstream of its own';
      const field = member.secret === undefined ? 'upstream' : 'secret';
      return [{ path: `${path}[${index}].${field}`, message }];
    }
    if (sameId === undefined) return [];
    const message = `gives this member the id \`${id}\`, which members[${sameId}] has; set another name`;
    return [{ path: `${path}[${index}].name`, message }];
  });
}

/** Finds models with a name at a member that no call of the group requests. */
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
      'is matched by no pattern of `match.models`, so no call of this group requests it; correct one of them';
    return [{ path: `${path}.${formatPath(['models', model])}`, message }];
  });
}

/** Finds models with two names at a member. Names of clients are case-insensitive. */
function sameNameErrors({ models }: MemberConfig, path: string): FieldError[] {
  const seen = new Map<string, string>();
  return Object.keys(models).flatMap((model) => {
    const lower = model.toLowerCase();
    const same = seen.get(lower);
    seen.set(lower, model);
    if (same === undefined) return [];
    const message = `is the model \`${same}\` in another case; keep one of the two names`;
    return [{ path: `${path}.${formatPath(['models', model])}`, message }];
  });
}

/** Finds matched upstreams whose calls cannot run at the members. */
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
    const message = `speaks ${first.dialect}, and the members speak ${dialect}, so its calls cannot run there; remove it, or use other members`;
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

/** Values that depend on the chosen member, which is known only after a pool was chosen. */
const BY_PLACE = new Set(['api_key', 'upstream', 'base_url']);

function partitionErrors({ partition_by: by }: GroupConfig, path: string): FieldError[] {
  return by.flatMap((each, index) => {
    if (!BY_PLACE.has(each)) return [];
    const message = `\`${each}\` cannot split a group with members, because the member is chosen within the pool; remove it`;
    return [{ path: `${path}.partition_by[${index}]`, message }];
  });
}

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
          `One call may match \`${narrow}\` and \`${wide}\`, which both have members. It would be rejected with ` +
          '`too_many_groups`, because it can run in one of them only. Narrow `match` of one group.',
      ),
    ...keyWarnings(groups, config, upstreams),
  ];
}

function ownWarnings({ name, members, affinity, queue }: GroupConfig): string[] {
  const warnings: string[] = [];
  if (members.every(({ enabled }) => !enabled)) {
    warnings.push(
      `Group \`${name}\`: every member is disabled, so no call is granted. Enable a member.`,
    );
  }
  const isLong =
    affinity !== null &&
    affinity.by !== 'none' &&
    members.length > 1 &&
    durationMs(affinity.wait) >= queue.timeout_ms;
  if (isLong) {
    warnings.push(
      `Group \`${name}\`: \`affinity.wait\` is not shorter than \`queue.timeout_ms\`, so a call whose member is full may be ` +
        'rejected with `queue_timeout` while another member has room. Shorten `affinity.wait`.',
    );
  }
  return warnings;
}

/** Warns of members whose calls are sent without a key. Keys of clients are not sent to members. */
function noKeyWarnings({ name, members }: GroupConfig, upstreams: Upstreams): string[] {
  const bare = members.filter(({ upstream: id, secret }) => {
    const upstream = upstreams.get(id);
    return secret === undefined && upstream?.secret === null && !upstream.isKeyless;
  });
  if (bare.length === 0) return [];
  return [
    `Group \`${name}\`: calls are sent without a key at ${ticked(bare.map(memberIdOf))}. Set \`secret\` at the member or ` +
      '`auth.secret` at its upstream, or `auth: none` there if it needs no key.',
  ];
}

/** Warns of groups for a member's upstream that do not count the calls which the members' group sends there. */
function elsewhereWarnings(group: GroupConfig, config: Config, upstreams: Upstreams): string[] {
  const from = upstreamsOf(group, upstreams);
  return config.groups.flatMap((other) => {
    if (other === group || !namesUpstreams(other)) return [];
    const counted = new Set(upstreamsOf(other, upstreams).map(({ id }) => id));
    const ids = [...new Set(group.members.map(({ upstream }) => upstream))];
    const shared = ids.filter((id) => counted.has(id));
    // Every call of the group was sent to an upstream of the other group.
    if (shared.length === 0 || from.every(({ id }) => counted.has(id))) return [];
    return [
      `Group \`${other.name}\` matches ${ticked(shared)}, but does not count calls that members of \`${group.name}\` take there: ` +
        'a call belongs to the groups of the upstream to which it was sent.',
    ];
  });
}

/** Warns of members that no client can use, because their keys require a gateway key. */
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
  const names = ticked(withKeys.map(({ name }) => name));
  return [
    `Keys of members are used for calls with a gateway key only, and \`keys\` is empty. Members of ${names} with a key get no calls. Create a gateway key.`,
  ];
}

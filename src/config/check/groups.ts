import type { GroupConfig, Config } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { compileGlobs, globsMayOverlap } from '../../routing/glob.ts';
import {
  baseUrlGlobs,
  baseUrlsOf,
  rankOf,
  namesUpstreams,
  upstreamsOf,
} from '../../routing/group-match.ts';
import {
  isAutomatic,
  withImpliedMatch,
  autoGroupNamed,
  autoGroupsNamedBy,
} from '../../routing/implied-groups.ts';
import { longestTimeoutMs, hasBudget, hasPrices, isFree } from '../../routing/group-limits.ts';
import { CREDENTIAL_HEADERS } from '../../routing/pool.ts';
import { PRICE_LISTS, priceListId } from '../../providers/prices/price-table.ts';
import { hasMembers, membersOf } from '../../routing/members.ts';
import { memberIdOf } from '../../contract/config/members.ts';
import { quoteName, ticked, type FieldError } from '../field-error.ts';
import { unknownUpstream } from './upstreams.ts';

/** Checks groups: names, order, lanes, jurisdictions, models and budgets. */

/** Finds entries of a list with the same value in a field that identifies them. */
export function duplicates<Field extends string>(
  list: string,
  field: Field,
  entries: readonly Readonly<Record<Field, string>>[],
): FieldError[] {
  const first = new Map<string, number>();
  return entries.flatMap((entry, index) => {
    const before = first.get(entry[field]);
    if (before !== undefined) {
      const message = `is the same as ${list}[${before}].${field}; each must be different`;
      return [{ path: `${list}[${index}].${field}`, message }];
    }
    first.set(entry[field], index);
    return [];
  });
}

/** Finds unknown upstreams in a group, and headers of keys by which it would be split. */
export function groupErrors(
  group: GroupConfig,
  path: string,
  upstreams: ReadonlyMap<string, Upstream>,
): FieldError[] {
  const ids = [...upstreams.keys()];
  const unknown = group.match.upstreams.flatMap((pattern, index) => {
    // The name of an automatic group contains its upstream, which has a check of its own.
    if (isAutomatic(group) || ids.some(compileGlobs([pattern]))) return [];
    const message = unknownUpstream(pattern, ids);
    return [{ path: `${path}.match.upstreams[${index}]`, message }];
  });
  const credentials = [
    ...group.partition_by.flatMap((by, index) => {
      if (!isCredential(by)) return [];
      const message = `\`${by}\` would write keys into the names of partitions; use \`api_key\` or \`caller\``;
      return [{ path: `${path}.partition_by[${index}]`, message }];
    }),
    ...group.fairness.by.flatMap((by, index) => {
      if (!isCredential(by)) return [];
      const message = `\`${by}\` would show keys as the names of tenants; use \`caller\``;
      return [{ path: `${path}.fairness.by[${index}]`, message }];
    }),
  ];
  return [...unknown, ...credentials, ...methodErrors(group, path)];
}

/** Finds methods without paths, which have no effect. */
function methodErrors({ match }: GroupConfig, path: string): FieldError[] {
  if (match.methods.length === 0 || match.paths.length > 0) return [];
  const message = 'has no effect without `match.paths`; add paths, or remove this field';
  return [{ path: `${path}.match.methods`, message }];
}

function isCredential(by: string): boolean {
  return by.startsWith('header:') && CREDENTIAL_HEADERS.has(by.slice('header:'.length));
}

/** Silence after which clients (Node's fetch) close a connection. Cloudflare's edge follows at 400 s. */
const SILENCE_MAX_MS = 300_000;

/** Warns of waits that are longer than a silent connection lasts. */
export function silenceWarnings(group: GroupConfig): string[] {
  const { name, queue } = group;
  const { after_ms: afterMs } = queue.keepalive;
  const isKeptAlive = afterMs !== null && afterMs <= SILENCE_MAX_MS;
  if (longestTimeoutMs(group) <= SILENCE_MAX_MS || isKeptAlive) return [];
  const keepalive =
    afterMs === null
      ? 'not set, so only streams get comments, after 200 s'
      : 'above that limit too';
  const field =
    queue.timeout_ms > SILENCE_MAX_MS
      ? '`queue.timeout_ms`'
      : 'a time-out in `queue.lane_timeouts_ms`';
  return [
    `Group \`${name}\`: ${field} is above 300 s, and \`queue.keepalive.after_ms\` is ${keepalive}. Connections that are ` +
      "silent for so long are closed by clients (Node's fetch after 300 s) or by Cloudflare's edge (400 s). Set " +
      '`queue.keepalive.after_ms` to 60000, and a shorter `queue.timeout_ms` if calls do not stream.',
  ];
}

/** Warns of base URLs that match no upstream. */
export function groupWarnings(group: GroupConfig, upstreams: readonly Upstream[]): string[] {
  const { name, match } = group;
  const warnings: string[] = [];
  for (const pattern of match.base_urls) {
    const matches = compileGlobs(baseUrlGlobs([pattern]));
    if (upstreams.some((upstream) => baseUrlsOf(upstream).some(matches))) continue;
    warnings.push(
      `Group \`${name}\`: \`${pattern}\` is the base URL of no enabled upstream, so no call matches it. Correct \`match.base_urls\`.`,
    );
  }
  return warnings;
}

/**
 * Finds groups whose rank a change would change. The rank decides in which order calls acquire slots. If it changed,
 * running calls would hold slots in one order and new calls in another, so that they could deadlock.
 */
export function rankErrors(before: Config, next: Config): FieldError[] {
  const ranks = new Map(before.groups.map((group) => [group.name, rankOf(group)]));
  return next.groups.flatMap((group, index) => {
    const [was, is] = [ranks.get(group.name), rankOf(group)];
    if (was === undefined || was === is) return [];
    const message =
      `would change the rank of \`${group.name}\` from ${was} to ${is}, and the rank of a group is fixed. ` +
      'Create a group with another name, and delete this one';
    return [{ path: `groups[${index}].match`, message }];
  });
}

/** Finds names of automatic groups that do not exist. */
export function autoGroupErrors(
  { auto_groups: all }: Pick<Config, 'auto_groups'>,
  upstreams: ReadonlyMap<string, Upstream>,
): FieldError[] {
  return all.flatMap(({ name }, index) => {
    const why = noAutoGroup(name, upstreams);
    return why === null ? [] : [{ path: `auto_groups[${index}].name`, message: why }];
  });
}

/** Returns why there is no automatic group of that name. null if there is one. */
function noAutoGroup(name: string, upstreams: ReadonlyMap<string, Upstream>): string | null {
  if (autoGroupNamed(name, upstreams) !== null) return null;
  const others = autoGroupsNamedBy(name, upstreams).map((group) => group.name);
  return others.length === 0
    ? `${quoteName(name)} names no enabled upstream`
    : `${quoteName(name)} is not an automatic group; that upstream has ${ticked(others)}`;
}

/** Finds fields in the entry of an automatic group that contradict its name. */
export function contradictedNames({ groups }: Pick<Config, 'groups'>): FieldError[] {
  return groups.flatMap((group, index) => {
    if (!isAutomatic(group)) return [];
    const { match, partition_by: by } = withImpliedMatch(group);
    const isOther = (written: object, implied: object): boolean =>
      Object.values(written).flat().length > 0 &&
      JSON.stringify(written) !== JSON.stringify(implied);
    return [
      // The name does not imply how references are treated.
      ...(isOther({ ...group.match, references: [] }, { ...match, references: [] })
        ? [errorAt(index, 'match', 'already decides which calls it takes')]
        : []),
      ...(isOther(group.partition_by, by)
        ? [errorAt(index, 'partition_by', 'already splits it: each provider key has its own pool')]
        : []),
      ...(['members', 'affinity', 'jurisdiction', 'location'] as const).flatMap((field) =>
        isStated(group[field])
          ? [errorAt(index, field, 'already decides where its calls run')]
          : [],
      ),
    ];
  });
}

/** Finds entries of automatic groups that do not exist, or that have a second entry in `auto_groups`. */
export function configuredAutoErrors(
  { groups, auto_groups: switched }: Pick<Config, 'groups' | 'auto_groups'>,
  upstreams: ReadonlyMap<string, Upstream>,
): FieldError[] {
  return groups.flatMap((group, index) => {
    if (!isAutomatic(group)) return [];
    const why = noAutoGroup(group.name, upstreams);
    if (why !== null) return [{ path: `groups[${index}].name`, message: why }];
    const other = switched.findIndex(({ name }) => name === group.name);
    if (other === -1) return [];
    const message = `has an entry in groups[${index}] too; move these settings there`;
    return [{ path: `auto_groups[${other}].name`, message }];
  });
}

function isStated(value: GroupConfig['members'] | string | object | null): boolean {
  return value !== null && (!Array.isArray(value) || value.length > 0);
}

function errorAt(index: number, field: string, what: string): FieldError {
  const message = `the name of an automatic group ${what}; remove this field, or create a group with another name`;
  return { path: `groups[${index}].${field}`, message };
}

/** Warns of groups that put calls into lane `high`, which no gateway key allows. */
export function laneWarnings({ keys, groups }: Config): string[] {
  if (keys.length === 0 || keys.some(({ lane_max }) => lane_max === 'high')) return [];
  const named = groups.filter(
    ({ queue }) =>
      queue.lane_default === 'high' || queue.lane_rules.some(({ lane }) => lane === 'high'),
  );
  return named.map(
    ({ name }) =>
      `Group \`${name}\` puts calls into lane \`high\`, but no key allows that lane. ` +
      'Set `lane_max: high` on the keys whose calls may use it.',
  );
}

/**
 * Warns of groups in another jurisdiction than the directory and the live feed. A self-hosted Headgate has one
 * location.
 */
export function jurisdictionWarnings(
  { groups }: Pick<Config, 'groups'>,
  options: { readonly privateUpstreams: boolean; readonly jurisdiction: string | null },
): string[] {
  if (options.privateUpstreams) return [];
  return groups.flatMap(({ name, jurisdiction }) => {
    if (jurisdiction === null || jurisdiction === options.jurisdiction) return [];
    return [
      `Group \`${name}\`: its pools are stored in ${jurisdiction}, but the directory and the live feed are not. They store its ` +
        'configuration and receive the names of its callers, agents and models. To store them there too, set the variable ' +
        '`JURISDICTION` in a new deployment. See docs/production.md, "Jurisdiction and location".',
    ];
  });
}

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

/** Warns of a budget over upstreams without prices. It rejects calls of unknown price, so all calls there. */
export function budgetWarnings(
  group: GroupConfig,
  config: Config,
  upstreams: ReadonlyMap<string, Upstream>,
): string[] {
  if (group.members.length > 0) return memberBudgetWarnings(group, upstreams);
  const { limits } = group;
  if (!lacksPrice(limits)) return [];
  const isNamed = namesUpstreams(group);
  // The upstreams of a model are unknown here.
  if (!isNamed && group.match.models.length > 0) return [];
  const configured = new Set(config.upstreams.map(({ id }) => id));
  const ids = upstreamsOf(group, upstreams)
    .filter((upstream) => !hasPrices(upstream) && !isFree(upstream))
    .map(({ id }) => id)
    .filter((id) => isNamed || configured.has(id));
  if (ids.length === 0) return [];
  return [
    `Group \`${group.name}\`: no prices are known for ${ticked(ids)}, so the budget rejects all calls there. ` +
      'Set `prices` at the upstream, or `limits.budget_usd.fallback_price` at the group.',
  ];
}

/** Warns of the same at members, whose calls run at their own upstreams. */
function memberBudgetWarnings(
  { name, limits, members }: GroupConfig,
  upstreams: ReadonlyMap<string, Upstream>,
): string[] {
  const unpriced = members.flatMap((member) => {
    const upstream = upstreams.get(member.upstream);
    return upstream === undefined || hasPrices(upstream) || isFree(upstream)
      ? []
      : [{ member, id: upstream.id }];
  });
  if (unpriced.length === 0) return [];
  if (lacksPrice(limits)) {
    const ids = [...new Set(unpriced.map(({ id }) => id))];
    return [
      `Group \`${name}\`: no prices are known for ${ticked(ids)}, so the budget rejects all calls there. ` +
        'Set `prices` at the upstream, or `limits.budget_usd.fallback_price` at the group.',
    ];
  }
  return unpriced.flatMap(({ member, id }) =>
    lacksPrice(member.limits)
      ? `Group \`${name}\`: no prices are known for \`${id}\`, so the budget of its member \`${memberIdOf(member)}\` rejects all ` +
        'calls. Set `prices` at the upstream, or `limits.budget_usd.fallback_price` at the member.'
      : [],
  );
}

/** Whether a budget rejects calls of unknown price. */
function lacksPrice(limits: Pick<GroupConfig['limits'], 'budget_usd'>): boolean {
  return hasBudget(limits) && limits.budget_usd.fallback_price === null;
}

import type { AssumedLimit } from '../contract/rpc/group-rpc.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { providerOf } from '../providers/catalog.ts';
import { knownLimitFor, limitsOfModels, UNKNOWN_LIMIT } from '../providers/limits.ts';
import type { PublishedLimit } from '../providers/provider.ts';
import type {
  GroupConfig,
  AutoGroupConfig,
  Config,
  GatewayKeyConfig,
  TeamConfig,
} from '../contract/config/config.ts';
import { groupSchema } from '../contract/config/group.ts';

/**
 * Groups that exist without configuration. Automatic groups: where one exists, which configured group takes its name,
 * and the switches that apply to both kinds. Groups that hold the limits of one key or team.
 */

interface AutoGroup {
  readonly name: string;
  readonly assumed: AssumedLimit;
  /** The group is for some models of the upstream only. */
  readonly isOfModels: boolean;
}

/**
 * Returns the automatic group of a call. All models with the same known limit share a group, and all other models of
 * the upstream share another one.
 */
export function autoGroupOf(upstream: Upstream, model: string | null): AutoGroup {
  return groupOfLimit(upstream, knownLimitFor(providerOf(upstream), model));
}

/** Returns the automatic group of that name. null means that no call can ever belong to it. */
export function autoGroupNamed(
  name: string,
  upstreams: ReadonlyMap<string, Upstream>,
): AutoGroup | null {
  return autoGroupsNamedBy(name, upstreams).find((group) => group.name === name) ?? null;
}

/** Returns all automatic groups of the upstream in the name of one. */
export function autoGroupsNamedBy(
  name: string,
  upstreams: ReadonlyMap<string, Upstream>,
): AutoGroup[] {
  const upstream = upstreamNamedBy(name, upstreams);
  if (upstream === null) return [];
  const ofModels = limitsOfModels(providerOf(upstream));
  return [autoGroupOf(upstream, null), ...ofModels.map((limit) => groupOfLimit(upstream, limit))];
}

/** Returns the upstream in the name of an automatic group, or null. */
export function upstreamNamedBy(
  name: string,
  upstreams: ReadonlyMap<string, Upstream>,
): Upstream | null {
  const [id = ''] = name.slice(AUTO_PREFIX.length).split('/');
  return (name.startsWith(AUTO_PREFIX) ? upstreams.get(id) : null) ?? null;
}

function groupOfLimit({ id }: Upstream, limit: PublishedLimit | null): AutoGroup {
  const models = limit === null ? '' : limit.modelPrefix;
  return {
    name: `${AUTO_PREFIX}${id}${models === '' ? '' : `/${models}`}`,
    assumed:
      limit === null
        ? { slotsMax: UNKNOWN_LIMIT, source: 'unknown' }
        : { slotsMax: limit.maxConcurrency, source: 'built_in' },
    isOfModels: models !== '',
  };
}

// An automatic group may have an entry of its own in `groups`. It has the same calls and the same pools as before, with
// the limits and settings of the entry, so that pools keep their slots, queues and what they learned.
export function isAutomatic({ name }: Pick<GroupConfig, 'name'>): boolean {
  return name.startsWith(AUTO_PREFIX);
}

/** Returns the groups that match calls by patterns. The others replace automatic groups. */
export function matchingGroups(groups: readonly GroupConfig[]): GroupConfig[] {
  return groups.filter((group) => !isAutomatic(group));
}

/** Adds the matched calls and the pools that the name of an automatic group implies. Its entry cannot set others. */
export function withImpliedMatch(group: GroupConfig): GroupConfig {
  if (!isAutomatic(group)) return group;
  const [, id = '', models] = /^auto:([^/]*)(?:\/(.*))?$/.exec(group.name) ?? [];
  return {
    ...group,
    match: {
      models: models === undefined ? [] : [`${models}*`],
      upstreams: [id],
      base_urls: [],
      keys: [],
      operations: [],
      paths: [],
      methods: [],
      references: group.match.references,
    },
    // Each provider key has its own pool, as in an automatic group without an entry.
    partition_by: ['api_key'],
  };
}

type WithAutoGroups = Pick<Config, 'auto_groups'>;

export type Switches = Pick<AutoGroupConfig, 'paused' | 'draining'>;

/** Returns the switches of an automatic group. One that is not listed is open. */
export function switchesOf({ auto_groups: all }: WithAutoGroups, name: string): Switches {
  const { paused, draining } = all.find((one) => one.name === name) ?? {};
  return { paused: paused ?? false, draining: draining ?? false };
}

/** Returns the effective switches: with everything paused, each group is paused. */
export function switchesInForce(config: WithAutoGroups & WithPause, name: string): Switches {
  const own = switchesOf(config, name);
  return { ...own, paused: own.paused || config.paused };
}

export function heldAutoGroups({ auto_groups: all }: WithAutoGroups): string[] {
  return all.filter(isHeld).map(({ name }) => name);
}

export function isHeld({ paused, draining }: Switches): boolean {
  return paused || draining;
}

/** Sets the switches of one automatic group. A group that is open and has no other setting needs no entry. */
export function withSwitches<Document extends WithAutoGroups>(
  config: Document,
  name: string,
  switches: Switches,
): Document {
  const { auto_groups: all } = config;
  const index = all.findIndex((one) => one.name === name);
  const { on_saturated: does } = all[index] ?? {};
  const entry = { name, ...switches, ...(does === undefined ? {} : { on_saturated: does }) };
  if (!isHeld(switches) && does === undefined) {
    return { ...config, auto_groups: all.filter((one) => one.name !== name) };
  }
  return { ...config, auto_groups: index === -1 ? [...all, entry] : all.with(index, entry) };
}

type WithPause = Pick<Config, 'paused'>;

/** Returns the effective settings of a group. While everything is paused, no call starts, with or without a slot. */
export function inForce<Group extends GroupConfig>(group: Group, { paused }: WithPause): Group {
  return paused ? { ...group, paused: true, dry_run: false, on_unavailable: 'reject' } : group;
}

/** Returns the entry of a group, or the switches of an automatic group without one. null if there is no such group. */
export function settingsOf(config: Config, name: string): GroupConfig | Switches | null {
  const group = config.groups.find((one) => one.name === name);
  if (group !== undefined) return group;
  return name.startsWith(AUTO_PREFIX) ? switchesOf(config, name) : null;
}

export function withSettings(config: Config, name: string, settings: unknown): Config {
  const index = config.groups.findIndex((one) => one.name === name);
  // The casts are sound: the settings come from `settingsOf`, with earlier values of these fields.
  if (index === -1) return withSwitches(config, name, settings as Switches);
  return { ...config, groups: config.groups.with(index, settings as GroupConfig) };
}

/** Prefixes of the groups that hold the limits of one key or team. A configured name cannot begin with them. */
export const KEY_PREFIX = 'key:';
export const TEAM_PREFIX = 'team:';

/** The parts of a configuration with limits of clients. */
type KeysAndTeams = Pick<Config, 'keys' | 'teams'>;

/** The parts of a configuration that define groups. */
export type GroupsAndLimits = Pick<Config, 'groups'> & KeysAndTeams & WithPause;

/** These limits do not belong to a provider, so releases need not wait for the counters of one. */
const DEFAULTS = groupSchema.parse({
  name: 'key',
  adaptive: 'off',
  holds: {
    release_cooldown_ms: 0,
    cancel_cooldown_ms: 0,
    failure_hold_ms: 0,
    // The groups of the provider limit the length of a run.
    max_run_ms: 86_400_000,
  },
});

/** Returns the group of a key's limits, in addition to all other groups of its calls. null if the key has none. */
function keyGroup(key: GatewayKeyConfig): GroupConfig | null {
  return hasLimits(key) ? limitGroup(KEY_PREFIX + key.id, key, [key.id]) : null;
}

/** Returns the group of a team's limits, which matches all keys of the team. null without limits or keys. */
function teamGroup(team: TeamConfig, keys: readonly GatewayKeyConfig[]): GroupConfig | null {
  const ids = keys.flatMap((key) => (key.team === team.id ? [key.id] : []));
  // A group without keys would match all calls.
  return hasLimits(team) && ids.length > 0 ? limitGroup(TEAM_PREFIX + team.id, team, ids) : null;
}

export function limitGroups({ keys, teams }: KeysAndTeams): GroupConfig[] {
  return [
    ...keys.flatMap((key) => keyGroup(key) ?? []),
    ...teams.flatMap((team) => teamGroup(team, keys) ?? []),
  ];
}

/** Returns the groups of the limits of one key: its own, and that of its team. */
export function limitGroupsOf(key: GatewayKeyConfig, { keys, teams }: KeysAndTeams): GroupConfig[] {
  const team = teams.find(({ id }) => id === key.team);
  return [keyGroup(key), team === undefined ? null : teamGroup(team, keys)].flatMap(
    (one) => one ?? [],
  );
}

/** Whether a group holds limits of a key or a team, by its name. null for another group. */
export function kindOfLimits(group: string): 'key' | 'team' | null {
  if (group.startsWith(KEY_PREFIX)) return 'key';
  return group.startsWith(TEAM_PREFIX) ? 'team' : null;
}

/** Returns a group by name as its pools use it: with the weights of keys, and effective switches. */
export function definedGroup(config: GroupsAndLimits, name: string): GroupConfig | undefined {
  const group = groupNamed(config, name);
  return group === undefined ? undefined : inForce(group, config);
}

function groupNamed(config: GroupsAndLimits, name: string): GroupConfig | undefined {
  if (name.startsWith(KEY_PREFIX)) {
    const key = config.keys.find(({ id }) => id === name.slice(KEY_PREFIX.length));
    return key === undefined ? undefined : (keyGroup(key) ?? undefined);
  }
  if (name.startsWith(TEAM_PREFIX)) {
    const team = config.teams.find(({ id }) => id === name.slice(TEAM_PREFIX.length));
    return team === undefined ? undefined : (teamGroup(team, config.keys) ?? undefined);
  }
  const group = config.groups.find((candidate) => candidate.name === name);
  if (group === undefined) return undefined;
  const weights = { ...keyWeights(config), ...group.fairness.weights };
  return { ...group, fairness: { ...group.fairness, weights } };
}

/** Returns the weights of keys that differ from 1. Automatic groups use these weights only. */
export function keyWeights({ keys }: Pick<Config, 'keys'>): Record<string, number> {
  return Object.fromEntries(keys.flatMap(({ id, weight }) => (weight === 1 ? [] : [[id, weight]])));
}

function limitGroup(
  name: string,
  { limits }: Pick<TeamConfig, 'limits'>,
  keys: readonly string[],
): GroupConfig {
  return {
    ...DEFAULTS,
    name,
    match: { ...DEFAULTS.match, keys: [...keys] },
    limits: { ...DEFAULTS.limits, ...limits },
  };
}

function hasLimits({
  limits: { budget_usd: budget, ...limits },
}: Pick<TeamConfig, 'limits'>): boolean {
  const { per_hour, per_day, per_month } = budget;
  return [...Object.values(limits), per_hour, per_day, per_month].some((limit) => limit !== null);
}

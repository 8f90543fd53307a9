import { groupSchema } from '../contract/config/group.ts';
import { inForce, type WithPause } from './everything-paused.ts';
import type {
  Config,
  GatewayKeyConfig,
  GroupConfig,
  TeamConfig,
} from '../contract/config/config.ts';

/** Names of the groups that hold the limits of one key, or of one team; a configured name cannot begin so. */
export const KEY_PREFIX = 'key:';
export const TEAM_PREFIX = 'team:';

/** The parts of a configuration with limits of callers. One of an older release has no teams. */
export type KeysAndTeams = Pick<Config, 'keys'> & Partial<Pick<Config, 'teams'>>;

type GroupsAndLimits = Pick<Config, 'groups'> & KeysAndTeams & WithPause;

/** Those limits are no provider's, so nothing of them waits for a provider's counters. */
const DEFAULTS = groupSchema.parse({
  name: 'key',
  adaptive: 'off',
  holds: {
    release_cooldown_ms: 0,
    cancel_cooldown_ms: 0,
    failure_hold_ms: 0,
    // The groups of the provider say that.
    max_run_ms: 86_400_000,
  },
});

/**
 * Makes the group of a key's own limits: it matches the key alone and comes on top of all others.
 * Null: the key has none.
 */
function keyGroup(key: GatewayKeyConfig): GroupConfig | null {
  return hasLimits(key) ? limitGroup(KEY_PREFIX + key.id, key, [key.id]) : null;
}

/** Makes the group of a team's limits: it matches all keys of the team. Null: it has no limits, or no key. */
function teamGroup(team: TeamConfig, keys: readonly GatewayKeyConfig[]): GroupConfig | null {
  const ids = keys.flatMap((key) => (key.team === team.id ? [key.id] : []));
  // One that matched no key would match all calls.
  return hasLimits(team) && ids.length > 0 ? limitGroup(TEAM_PREFIX + team.id, team, ids) : null;
}

/** Makes the groups of the limits of keys and teams. */
export function limitGroups({ keys, teams = [] }: KeysAndTeams): GroupConfig[] {
  return [
    ...keys.flatMap((key) => keyGroup(key) ?? []),
    ...teams.flatMap((team) => teamGroup(team, keys) ?? []),
  ];
}

/** Lists the groups that the limits of one key are in: its own, and that of its team. */
export function limitGroupsOf(
  key: GatewayKeyConfig,
  { keys, teams = [] }: KeysAndTeams,
): GroupConfig[] {
  const team = teams.find(({ id }) => id === key.team);
  return [keyGroup(key), team === undefined ? null : teamGroup(team, keys)].flatMap(
    (one) => one ?? [],
  );
}

/** Tells by the name of a group that holds limits of callers whose they are; null: it is another group. */
export function kindOfLimits(group: string): 'key' | 'team' | null {
  if (group.startsWith(KEY_PREFIX)) return 'key';
  return group.startsWith(TEAM_PREFIX) ? 'team' : null;
}

/** Finds a group by its name, as its pools are to know it: with the weights of keys, and the keys' own groups. */
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
    const team = config.teams?.find(({ id }) => id === name.slice(TEAM_PREFIX.length));
    return team === undefined ? undefined : (teamGroup(team, config.keys) ?? undefined);
  }
  const group = config.groups.find((candidate) => candidate.name === name);
  if (group === undefined) return undefined;
  const weights = { ...keyWeights(config), ...group.fairness.weights };
  return { ...group, fairness: { ...group.fairness, weights } };
}

/** Lists the weights of keys that have another one than most; automatic groups go by them alone. */
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

import { groupSchema } from '../contract/config/group.ts';
import { inForce, type WithPause } from './auto-groups.ts';
import type {
  Config,
  GatewayKeyConfig,
  GroupConfig,
  TeamConfig,
} from '../contract/config/config.ts';

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

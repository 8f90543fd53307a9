import { groupSchema } from '../contract/config/group.ts';
import type { Config, GatewayKeyConfig, GroupConfig } from '../contract/config/config.ts';

/** Names of the groups that hold the limits of one key; a configured name cannot begin so. */
export const KEY_PREFIX = 'key:';

type KeysAndGroups = Pick<Config, 'groups' | 'keys'>;

/** A key's limits are no provider's, so nothing of them waits for a provider's counters. */
const DEFAULTS = groupSchema.parse({
  name: 'key',
  adaptive: 'off',
  holds: { release_cooldown_ms: 0, cancel_cooldown_ms: 0, failure_hold_ms: 0 },
});

/**
 * Makes the group of a key's own limits: it matches the key alone and comes on top of all others.
 * Null: the key has none.
 */
export function keyGroup(key: GatewayKeyConfig): GroupConfig | null {
  if (!hasLimits(key)) return null;
  return {
    ...DEFAULTS,
    name: KEY_PREFIX + key.id,
    match: { ...DEFAULTS.match, keys: [key.id] },
    limits: { ...DEFAULTS.limits, ...key.limits },
  };
}

/** Makes the groups of keys' limits. */
export function keyGroups({ keys }: Pick<Config, 'keys'>): GroupConfig[] {
  return keys.flatMap((key) => keyGroup(key) ?? []);
}

/** Finds a group by its name, as its pools are to know it: with the weights of keys, and the keys' own groups. */
export function definedGroup(config: KeysAndGroups, name: string): GroupConfig | undefined {
  if (name.startsWith(KEY_PREFIX)) {
    const key = config.keys.find(({ id }) => id === name.slice(KEY_PREFIX.length));
    return key === undefined ? undefined : (keyGroup(key) ?? undefined);
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

function hasLimits({ limits: { budget_usd: budget, ...limits } }: GatewayKeyConfig): boolean {
  const { per_hour, per_day, per_month } = budget;
  return [...Object.values(limits), per_hour, per_day, per_month].some((limit) => limit !== null);
}

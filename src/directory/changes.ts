import type { Config, GroupConfig } from '../contract/config/config.ts';
import type { ChangedAt } from '../contract/rpc/directory-rpc.ts';
import { keyWeights, limitGroups, matchingGroups } from '../routing/implied-groups.ts';
import { callRoute, ownPool, poolKey, takesCalls, type PlacedPool } from '../routing/pool.ts';

/** The effects of a configuration change on pools. */
export interface ConfigChange {
  /** Whether calls may be routed differently, so that every waiter must be routed again. */
  readonly routingMoved: boolean;
  /** Whether it may affect calls of any group. */
  readonly isEverywhere: boolean;
  /** Names of the groups that were edited, added or removed. */
  readonly groups: ReadonlySet<string>;
  /** Unpartitioned pools that may hold calls but receive none under the new configuration. */
  readonly retired: readonly PlacedPool[];
  /** Names of the groups whose partitioning changed. */
  readonly unshared: readonly string[];
}

export function changeBetween(before: Config, next: Config): ConfigChange {
  const old = new Map(allGroups(before).map((group) => [group.name, group]));
  const now = new Map(allGroups(next).map((group) => [group.name, group]));
  const names = new Set([...old.keys(), ...now.keys()]);
  // Weights of keys apply in every group.
  const isWeighed = !same(keyWeights(before), keyWeights(next));
  const groups = [...names].filter((name) => isWeighed || !same(old.get(name), now.get(name)));
  const retired = [...old.values()].flatMap((group) => {
    const own = ownPool(group);
    return own === null || takesCalls(own, next) ? [] : [own];
  });
  const unshared = matchingGroups(before.groups).filter(
    ({ name, partition_by: by }) => !same(by, now.get(name)?.partition_by),
  );
  const routingMoved = !same(routingOf(before), routingOf(next));
  return {
    routingMoved,
    isEverywhere: routingMoved || !same(commonOf(before), commonOf(next)),
    groups: new Set([...groups, ...changedAutoGroups(before, next)]),
    retired,
    unshared: unshared.map(({ name }) => name),
  };
}

/** Adds a version to the list of versions that affected pools. */
export function changedAtWith(
  before: ChangedAt,
  { isEverywhere, groups }: ConfigChange,
  version: number,
): ChangedAt {
  if (isEverywhere) return { everywhere: version, groups: {} };
  const changed = [...groups].map((name) => [name, version]);
  return { ...before, groups: { ...before.groups, ...Object.fromEntries(changed) } };
}

/**
 * Returns the unlisted, unpartitioned pools that a change affects, so that their waiters are notified. The object of a
 * new group is left out. It should be created near its first caller, not near the directory, and it has no waiters.
 */
export function ownPoolsToPush(
  change: ConfigChange,
  before: Config,
  next: Config,
  listed: readonly PlacedPool[],
): PlacedPool[] {
  const known = new Set(allGroups(before).map((group) => group.name));
  const reported = new Set(listed.map(poolKey));
  return allGroups(next).flatMap((group) => {
    const own = known.has(group.name) ? ownPool(group) : null;
    if (own === null || reported.has(poolKey(own))) return [];
    return change.routingMoved || change.groups.has(group.name) ? [own] : [];
  });
}

/**
 * Returns everything that affects routing. Limits and queues do not, and neither does the entry of an automatic group,
 * whose calls use the same pools without it.
 */
function routingOf(config: Config): unknown {
  const groups = matchingGroups(allGroups(config))
    .map((group) => ({ name: group.name, ...callRoute(group) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return { upstreams: config.upstreams, default_upstream: config.default_upstream, groups };
}

/** Returns what may affect calls of any group. The omitted fields are read from the directory each time. */
function commonOf(config: Config): unknown {
  return { ...config, groups: [], auto_groups: [], admin_keys: [], webhook: null };
}

/** Lists automatic groups that were paused or resumed, or whose calls are now routed differently. */
function changedAutoGroups(before: Config, next: Config): string[] {
  const [old, now] = [before, next].map(
    ({ auto_groups: all }) => new Map(all.map((one) => [one.name, one])),
  );
  const names = new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])]);
  return [...names].filter((name) => !same(old?.get(name), now?.get(name)));
}

/** Lists the configured groups and those created for limits of keys and teams. */
function allGroups(config: Config): GroupConfig[] {
  return [...config.groups, ...limitGroups(config)];
}

/** Compares by text. Both sides come from one schema, which writes fields in a fixed order. */
function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/**
 * Returns the secrets configured on the upstreams of a group's members, by upstream id. Built-in upstreams have none.
 */
export function ownSecretsOf(
  { upstreams }: Pick<Config, 'upstreams'>,
  { members }: Pick<GroupConfig, 'members'>,
): Readonly<Record<string, string>> {
  const named = new Set(members.map(({ upstream }) => upstream));
  return Object.fromEntries(
    upstreams.flatMap(({ id, auth }) =>
      named.has(id) && typeof auth === 'object' ? [[id, auth.secret]] : [],
    ),
  );
}

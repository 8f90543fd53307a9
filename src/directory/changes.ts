import type { Config, GroupConfig } from '../contract/config/config.ts';
import type { ChangedAt } from '../contract/rpc/directory-rpc.ts';
import { keyWeights, limitGroups } from '../routing/key-groups.ts';
import { matchingGroups } from '../routing/configured-auto-groups.ts';
import { callRoute } from '../routing/call-route.ts';
import { ownPool, poolKey, takesCalls, type PlacedPool } from '../routing/pool.ts';

/** The meaning of a change of the configuration to the pools. */
export interface ConfigChange {
  /** Whether a call may take another way than before, so that every waiter must be routed again. */
  readonly routingMoved: boolean;
  /** It may matter to calls of any group. */
  readonly isEverywhere: boolean;
  /** Names of the groups that were edited, added or removed. */
  readonly groups: ReadonlySet<string>;
  /** Own objects that may hold calls and that the new configuration no longer sends any to. */
  readonly retired: readonly PlacedPool[];
  /** Names of the groups whose partitions are other ones now. */
  readonly unshared: readonly string[];
}

/** Compares two configurations. */
export function changeBetween(before: Config, next: Config): ConfigChange {
  const old = new Map(allGroups(before).map((group) => [group.name, group]));
  const now = new Map(allGroups(next).map((group) => [group.name, group]));
  const names = new Set([...old.keys(), ...now.keys()]);
  // The weights of keys hold in every group.
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

/** Lists the versions that changed something for pools, with one more. */
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
 * Picks the own objects of groups that a change touches and that are not listed: who waits there hears of it by this. A
 * new group's object is left alone: it is created near its first caller, not near the directory, and has nobody to tell.
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
 * Picks everything that decides which way a call takes. Limits and queues do not, nor does an entry of an automatic group:
 * the same calls are in the same pools without it.
 */
function routingOf(config: Config): unknown {
  const groups = matchingGroups(allGroups(config))
    .map((group) => ({ name: group.name, ...callRoute(group) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return { upstreams: config.upstreams, default_upstream: config.default_upstream, groups };
}

/** Picks what may matter to calls of any group. Who reads what is left out asks the directory each time. */
function commonOf(config: Config): unknown {
  return { ...config, groups: [], auto_groups: [], admin_keys: [], webhook: null };
}

/** Lists automatic groups that were stopped or let go on, or whose calls go elsewhere now. */
function changedAutoGroups(before: Config, next: Config): string[] {
  const [old, now] = [before, next].map(
    // A configuration of an older release has none.
    ({ auto_groups: all = [] }: Partial<Config>) => new Map(all.map((one) => [one.name, one])),
  );
  const names = new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])]);
  return [...names].filter((name) => !same(old?.get(name), now?.get(name)));
}

/** Lists the configured groups, and those that the limits of keys and teams make. */
function allGroups(config: Config): GroupConfig[] {
  return [...config.groups, ...limitGroups(config)];
}

/** Compares by text: both sides come from one schema, which writes its fields in one order. */
function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

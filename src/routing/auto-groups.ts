import type { AssumedLimit } from '../contract/rpc/group-rpc.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { providerOf } from '../providers/catalog.ts';
import { knownLimitFor, limitsOfModels, UNKNOWN_LIMIT } from '../providers/limits.ts';
import type { PublishedLimit } from '../providers/provider.ts';
import type { GroupConfig, AutoGroupConfig, Config } from '../contract/config/config.ts';

/**
 * Automatic groups: where one exists without configuration, which configured group takes its name, and the switches
 * that apply to both kinds.
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

export type WithPause = Pick<Config, 'paused'>;

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

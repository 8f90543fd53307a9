import { ratesOf } from '../routing/group-limits.ts';
import type { Switches } from '../routing/implied-groups.ts';
import { isOwnPartition } from '../routing/pool.ts';
import { groupSchema, type CallLogConfig } from '../contract/config/group.ts';
import {
  durationMs,
  affinitySchema,
  memberIdOf,
  type MemberConfig,
} from '../contract/config/members.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import type { AssumedLimit, GroupDefinition } from '../contract/rpc/group-rpc.ts';
import type { PoolStatus } from '../contract/status.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import { memberId } from '../core/words/ids.ts';
import type { AffinitySettings, MemberSettings, GroupSettings } from '../core/words/settings.ts';
import { LANES, type Lane } from '../core/words/ticket.ts';

const DEFAULTS: GroupConfig = groupSchema.parse({ name: 'unconfigured' });

/** Affinity if the configuration sets none. */
const AFFINITY = affinitySchema.parse({});

/** Settings of a group without a configuration: the defaults, and no slots. */
const UNCONFIGURED: GroupSettings = {
  ...settingsFrom(DEFAULTS),
  slotsMax: 0,
};

export interface PoolIdentity {
  readonly group: string;
  readonly partition: string | null;
}

export function identityOf(poolName: string): PoolIdentity {
  const split = poolName.indexOf('#');
  if (split < 0) return { group: poolName, partition: null };
  return { group: poolName.slice(0, split), partition: poolName.slice(split + 1) };
}

type OwnSecrets = Readonly<Record<string, string>>;

/** Where a pool's limits come from, at one version of the configuration. */
export interface Definition {
  readonly version: number;
  readonly routingVersion: number;
  readonly config: GroupConfig | null;
  /** Names of the secrets of its members' upstreams. */
  readonly ownSecrets: OwnSecrets;
  readonly assumed: AssumedLimit | null;
  /** Weights of keys in an automatic group. */
  readonly weights: Readonly<Record<string, number>>;
  /** Switches that an operator set on an automatic group. */
  readonly switches: Switches;
  /** Whether the group is now partitioned differently or placed elsewhere, and sends this pool no calls. */
  readonly takesNoCalls: boolean;
}

const UNDEFINED: Definition = {
  version: 0,
  routingVersion: 0,
  config: null,
  ownSecrets: {},
  assumed: null,
  weights: {},
  switches: { paused: false, draining: false },
  takesNoCalls: false,
};

export function definitionFrom(
  pushed: GroupDefinition | null,
  assumed: AssumedLimit | null,
): Definition {
  if (pushed === null) return { ...UNDEFINED, assumed };
  const { version, routingVersion, weights = {}, paused = false, draining = false } = pushed;
  const { takesNoCalls = false, ownSecrets = {} } = pushed;
  const config = pushed.config === null ? null : (JSON.parse(pushed.config) as GroupConfig);
  const switches = { paused, draining };
  return { version, routingVersion, config, ownSecrets, assumed, weights, switches, takesNoCalls };
}

/** Whether a pool was configured and no longer receives calls. Automatic groups never retire. */
export function isRetired(identity: PoolIdentity, definition: Definition): boolean {
  if (identity.group.startsWith(AUTO_PREFIX)) return false;
  return definition.version > 0 && (definition.config === null || definition.takesNoCalls);
}

/**
 * Builds the core's settings.
 *
 * @param waitersMax maximum waiters, regardless of the configuration
 * @param partition partition of the pool. Calls with keys of their own use no other upstream, so their partition has no
 * members.
 */
export function settingsOf(
  definition: Definition,
  waitersMax: number,
  partition: PoolIdentity['partition'] = null,
): GroupSettings {
  const settings = settingsWithin(definition);
  const members = isOwnPartition(partition) ? [] : settings.members;
  const queueLengthMax = Math.min(settings.queueLengthMax, waitersMax);
  return { ...settings, members, queueLengthMax };
}

function settingsWithin({
  config,
  ownSecrets,
  assumed,
  weights,
  switches,
}: Definition): GroupSettings {
  if (config !== null) return within(settingsFrom(config, ownSecrets), assumed);
  const set = { paused: switches.paused, isDraining: switches.draining };
  return assumed === null
    ? { ...UNCONFIGURED, ...set }
    : { ...UNCONFIGURED, ...set, slotsMax: assumed.slotsMax, isHard: false, weights };
}

/** Limits the slots of a pool whose key is unverified. */
function within(settings: GroupSettings, assumed: AssumedLimit | null): GroupSettings {
  if (assumed?.isUnproved !== true) return settings;
  return { ...settings, slotsMax: Math.min(settings.slotsMax, assumed.slotsMax) };
}

function settingsFrom(
  { limits, queue, holds, fairness, ...config }: GroupConfig,
  ownSecrets: OwnSecrets = {},
): GroupSettings {
  return {
    slotsMax: slotsMaxOf(limits),
    isHard: true,
    isAdaptive: config.adaptive === 'auto',
    ...ratesOf(limits),
    ...reactionsOf(config),
    slotsPerCallMax: limits.max_weight,
    queueLengthMax: queue.max_length,
    queueLengthMaxEach: queue.max_length_each ?? Infinity,
    queueLengthMaxEachAgent: queue.max_length_each_agent ?? Infinity,
    timeoutMs: queue.timeout_ms,
    paused: config.paused,
    isDraining: config.draining,
    isDryRun: config.dry_run,
    nested: queue.nested,
    releaseCooldownMs: holds.release_cooldown_ms,
    cancelCooldownMs: holds.cancel_cooldown_ms,
    failureCooldownMs: holds.failure_hold_ms,
    laneShares: { high: 0, ...queue.lane_shares },
    ageCreditMs: queue.age_credit_ms,
    byAgent: fairness.by[1] === 'agent',
    weights: fairness.weights,
    slotsMaxEach: fairness.max_concurrency_each ?? Infinity,
    slotsMaxEachAgent: fairness.max_concurrency_each_agent ?? Infinity,
    ...reservations(fairness.reserved),
    members: membersOf(config, ownSecrets),
    affinity: affinityOf(config),
  };
}

function membersOf(
  { members, ...config }: Pick<GroupConfig, 'members' | 'adaptive' | 'breaker' | 'probe'>,
  ownSecrets: OwnSecrets,
): readonly MemberSettings[] {
  return members.map((member) => ({
    id: memberId(memberIdOf(member)),
    slotsMax: slotsMaxOf(member.limits),
    isHard: true,
    isAdaptive: config.adaptive === 'auto',
    ...ratesOf(member.limits),
    ...reactionsOf(config),
    weight: member.weight,
    tier: member.tier,
    isEnabled: member.enabled,
    ...keyOf(member, ownSecrets),
  }));
}

function reactionsOf({
  breaker,
  probe,
}: Pick<GroupConfig, 'breaker' | 'probe'>): Pick<MemberSettings, 'breaker' | 'probesPauses'> {
  const { threshold, min_calls: callsMin, window_ms: windowMs } = breaker;
  return {
    breaker: {
      failedShare: threshold ?? Infinity,
      callsMin,
      windowMs,
      openMs: breaker.hold_ms,
      openMsMax: breaker.hold_max_ms,
    },
    probesPauses: probe !== 'off',
  };
}

/** Returns what identifies a member: its upstream and its key. */
function keyOf(
  { upstream, secret }: Pick<MemberConfig, 'upstream' | 'secret'>,
  ownSecrets: OwnSecrets,
): Pick<MemberSettings, 'succeeds' | 'place'> {
  const own = ownSecrets[upstream];
  const isOwn = secret === undefined || secret === own;
  return {
    succeeds: isOwn ? upstream : null,
    place: JSON.stringify([upstream, secret ?? own ?? null]),
  };
}

function affinityOf({ affinity }: Pick<GroupConfig, 'affinity'>): AffinitySettings {
  const { by, for: remembered, wait } = affinity ?? AFFINITY;
  return { by, forMs: durationMs(remembered), waitMs: durationMs(wait) };
}

/** Returns which calls of the group are logged. Automatic groups use the defaults. */
export function callLogOf({ config }: Definition): CallLogConfig {
  return (config ?? DEFAULTS).log;
}

export type WarningBounds = Pick<GroupConfig, 'warn_at' | 'warn_wait_ms'> & {
  readonly timeoutMs: number;
};

/** Returns the warning settings of the group. Automatic groups use the defaults. */
export function warningBoundsOf({ config }: Definition): WarningBounds {
  const { warn_at, warn_wait_ms, queue } = config ?? DEFAULTS;
  return { warn_at, warn_wait_ms, timeoutMs: queue.timeout_ms };
}

/** Returns the maximum slots. If any limit is 0, the group grants nothing. */
function slotsMaxOf({
  max_concurrency: slotsMax,
  ...limits
}: Omit<GroupConfig['limits'], 'max_weight'>): number {
  const { rpm, tpm, itpm, otpm, rpd, tpd } = limits;
  if ([rpm, tpm, itpm, otpm, rpd, tpd].includes(0)) return 0;
  return slotsMax ?? Infinity;
}

/** Splits reservations: `lane:high` reserves for a lane, and other names for a tenant. */
function reservations(
  reserved: GroupConfig['fairness']['reserved'],
): Pick<GroupSettings, 'reserved' | 'reservedLanes'> {
  const entries = Object.entries(reserved);
  const ofLane = (lane: Lane) => entries.filter(([name]) => name === `lane:${lane}`);
  return {
    reserved: Object.fromEntries(entries.filter(([name]) => !name.startsWith('lane:'))),
    reservedLanes: Object.fromEntries(
      LANES.flatMap((lane) => ofLane(lane).map(([, slots]) => [lane, slots])),
    ),
  };
}

export function limitOf(definition: Definition): PoolStatus['limit'] {
  const { config, assumed } = definition;
  if (config !== null) {
    const configured = config.limits.max_concurrency;
    return { configured, effective: configured, source: 'configured' };
  }
  if (assumed === null) return { configured: null, effective: 0, source: 'configured' };
  return { configured: null, effective: assumed.slotsMax, source: assumed.source };
}

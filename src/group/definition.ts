import { ratesOf } from '../routing/group-rates.ts';
import type { Switches } from '../routing/auto-group-switches.ts';
import { isOwnPartition } from '../routing/partition.ts';
import type { CallLogConfig } from '../contract/config/call-log.ts';
import { durationMs } from '../contract/config/duration.ts';
import { groupSchema } from '../contract/config/group.ts';
import { affinitySchema, memberIdOf, type MemberConfig } from '../contract/config/members.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import type { AssumedLimit, GroupDefinition } from '../contract/rpc/group-rpc.ts';
import type { PoolStatus } from '../contract/status.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import { memberId } from '../core/words/ids.ts';
import type { AffinitySettings, MemberSettings } from '../core/words/member.ts';
import type { GroupSettings } from '../core/words/settings.ts';
import { LANES, type Lane } from '../core/words/ticket.ts';

const DEFAULTS: GroupConfig = groupSchema.parse({ name: 'unconfigured' });

/** Default reactions. */
const REACTIONS = { breaker: DEFAULTS.breaker, probe: DEFAULTS.probe };

/** Affinity of members of which nothing is said. */
const AFFINITY = affinitySchema.parse({});

/** Settings of a group that no configuration describes: the defaults of one, and no slots. */
const UNCONFIGURED: GroupSettings = {
  ...settingsFrom(DEFAULTS),
  slotsMax: 0,
};

/** A pool's name taken apart. */
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

/** The source of a pool's limit, at one version of the configuration. */
export interface Definition {
  readonly version: number;
  readonly routingVersion: number;
  readonly config: GroupConfig | null;
  /** Names of the secrets of its members' upstreams. */
  readonly ownSecrets: OwnSecrets;
  readonly assumed: AssumedLimit | null;
  /** Weights of keys in an automatic group. */
  readonly weights: Readonly<Record<string, number>>;
  /** Switches that an operator set of an automatic group. */
  readonly switches: Switches;
  /** The group is split otherwise or elsewhere by now, and sends this pool no calls. */
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
  const config = pushed.config === null ? null : readConfig(JSON.parse(pushed.config));
  const switches = { paused, draining };
  return { version, routingVersion, config, ownSecrets, assumed, weights, switches, takesNoCalls };
}

/**
 * Reads a stored definition. It may be older than this release: parsing fills in what is new. One that does
 * not parse was written by a newer release and checked by it.
 */
function readConfig(stored: unknown): GroupConfig {
  const parsed = groupSchema.safeParse(stored);
  return parsed.success ? parsed.data : (stored as GroupConfig);
}

/** Tells whether a pool was configured once and gets no calls any more. Automatic groups never retire. */
export function isRetired(identity: PoolIdentity, definition: Definition): boolean {
  if (identity.group.startsWith(AUTO_PREFIX)) return false;
  return definition.version > 0 && (definition.config === null || definition.takesNoCalls);
}

/**
 * Makes the settings that the core goes by.
 *
 * @param waitersMax calls that may wait, whatever is configured
 * @param partition of the pool; calls that bring keys of their own go nowhere else, so theirs has no members
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

/** Bounds the slots of a pool that is there to find out whose key it is of. */
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
  // A definition of an older release that was never parsed by this one has none.
  return (members ?? []).map((member) => ({
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

/** Returns how a group reacts to its upstreams. */
function reactionsOf(
  config: Pick<GroupConfig, 'breaker' | 'probe'>,
): Pick<MemberSettings, 'breaker' | 'probesPauses'> {
  // A definition that was stored by an older release may have neither.
  const { breaker, probe } = { ...REACTIONS, ...config };
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

/** Tells what a member is beside others: where its calls go, and with which key. */
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

/** Picks which calls of the group are kept in its log; those of an automatic group go by the defaults. */
export function callLogOf({ config }: Definition): CallLogConfig {
  // A definition of an older release, which was never parsed by this one, has none.
  return (config as Partial<GroupConfig> | null)?.log ?? DEFAULTS.log;
}

/** The part of a group's configuration that warnings go by. */
export type WarningBounds = Pick<GroupConfig, 'warn_at' | 'warn_wait_ms'> & {
  /** The longest that a call may wait. */
  readonly timeoutMs: number;
};

/** Picks what warnings of the group go by; those of an automatic group go by the defaults. */
export function warningBoundsOf({ config }: Definition): WarningBounds {
  const { warn_at, warn_wait_ms, queue } = config ?? DEFAULTS;
  // A definition of an older release, which was never parsed by this one, knows no bounds.
  return {
    warn_at: warn_at ?? null,
    warn_wait_ms: warn_wait_ms ?? null,
    timeoutMs: queue.timeout_ms,
  };
}

/** Takes the limit of slots; a limit of 0, of whatever kind, grants nothing. */
function slotsMaxOf({
  max_concurrency: slotsMax,
  ...limits
}: Omit<GroupConfig['limits'], 'max_weight'>): number {
  const { rpm, tpm, itpm, otpm, rpd, tpd } = limits;
  if ([rpm, tpm, itpm, otpm, rpd, tpd].includes(0)) return 0;
  return slotsMax ?? Infinity;
}

/** Sorts reservations: `lane:high` reserves for a lane, everything else for a tenant of that name. */
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

import type { GroupConfig } from '../contract/config.ts';
import type { AssumedLimit, GroupDefinition, PoolStatus } from '../contract/group-rpc.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { GroupSettings } from '../core/settings.ts';

/** What an object that nobody has configured yet goes by: it grants nothing. */
const UNCONFIGURED: GroupSettings = {
  slotsMax: 0,
  queueLengthMax: 1_000,
  timeoutMs: 240_000,
  paused: false,
  releaseCooldownMs: 'auto',
  cancelCooldownMs: 'auto',
  failureHoldMs: 2_000,
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

/** Where a pool's limit comes from, at one version of the configuration. */
export interface Definition {
  readonly version: number;
  readonly routingVersion: number;
  readonly config: GroupConfig | null;
  readonly assumed: AssumedLimit | null;
}

const UNDEFINED: Definition = { version: 0, routingVersion: 0, config: null, assumed: null };

export function definitionFrom(
  pushed: GroupDefinition | null,
  assumed: AssumedLimit | null,
): Definition {
  if (pushed === null) return { ...UNDEFINED, assumed };
  const { version, routingVersion } = pushed;
  // The directory has validated it against this very schema.
  const config = pushed.config === null ? null : (JSON.parse(pushed.config) as GroupConfig);
  return { version, routingVersion, config, assumed };
}

/** A group that was configured once and is no more. Automatic groups never retire. */
export function isRetired(identity: PoolIdentity, definition: Definition): boolean {
  if (identity.group.startsWith(AUTO_PREFIX)) return false;
  return definition.version > 0 && definition.config === null;
}

export function settingsOf(definition: Definition): GroupSettings {
  const { config, assumed } = definition;
  if (config === null) {
    return assumed === null ? UNCONFIGURED : { ...UNCONFIGURED, slotsMax: assumed.slotsMax };
  }
  return {
    slotsMax: config.limits.max_concurrency ?? Infinity,
    queueLengthMax: config.queue.max_length,
    timeoutMs: config.queue.timeout_ms,
    paused: config.paused,
    releaseCooldownMs: config.holds.release_cooldown_ms,
    cancelCooldownMs: config.holds.cancel_cooldown_ms,
    failureHoldMs: config.holds.failure_hold_ms,
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

import { steadyClock, within } from '../runtime/async.ts';
import type { CallerGroup } from '../contract/caller-api.ts';
import type { GatewayKeyConfig, GroupConfig } from '../contract/config/config.ts';
import { directoryOf, type Env } from '../env.ts';
import {
  matchingGroups,
  definedGroup,
  kindOfLimits,
  limitGroupsOf,
} from '../routing/implied-groups.ts';
import { logEvent } from '../runtime/log.ts';
import { hashedPartition, hashesPartitions } from '../routing/placed-call.ts';
import { ownPool, takesCalls, type PlacedPool } from '../routing/pool.ts';
import { AUTO_PREFIX, OVERFLOW_PARTITION } from '../contract/pool-name.ts';
import { compileGroups } from '../routing/group-match.ts';
import { readSecret, ACCOUNT_PREFIX, fingerprint } from '../runtime/secrets.ts';
import { accountOfTaken } from '../call/identity/authenticate.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { mayUse } from '../routing/key-access.ts';
import type { RoutingTable } from '../config/snapshots.ts';

export interface StatusCaller {
  /** Id of the gateway key, or fingerprint of the provider key. */
  readonly id: string;
  readonly key: GatewayKeyConfig | null;
  /** Fingerprint of the provider key in the request. */
  readonly fingerprint: string | null;
}

/** A pool in which the caller may have calls. */
export interface CallerPool {
  readonly pool: PlacedPool;
  readonly kind: CallerGroup['kind'];
  /** null for an automatic group. */
  readonly group: GroupConfig | null;
  /** No other caller uses the pool, so its remaining limits may be shown. */
  readonly isOwn: boolean;
  /** The pool is shown even without a call in it. */
  readonly isShown: boolean;
}

/** Time for which the list of pools is cached, because callers may poll often and there is only one directory. */
const LISTED_FOR_MS = 2_000;
const ANSWER_MS_MAX = 1_000;

/** The last list of pools. Plain data only, because requests cannot share promises. */
let listed: { readonly at: number; readonly pools: readonly PlacedPool[] } | null = null;

/**
 * Returns the pools that may hold calls of a caller, its own ones first. A caller with a gateway key sees all groups
 * that its key may use. A caller with a provider key was not admitted by an operator, so it sees only its own pools and
 * groups in which it has calls.
 */
export async function callerPools(
  env: Env,
  table: RoutingTable,
  caller: StatusCaller,
): Promise<{ readonly pools: readonly CallerPool[]; readonly mayUse: readonly string[] }> {
  const pools = await listedPools(env);
  const { config, fingerprintKey } = table.snapshot;
  const hashedId = await hashedPartition(fingerprintKey, caller.id);
  const limits = caller.key === null ? [] : limitGroupsOf(caller.key, config);
  const keyIds = [caller.key?.id, caller.fingerprint].filter((id) => typeof id === 'string');
  const groups = compileGroups(matchingGroups(config.groups))
    .filter((group) => group.matchesCaller(keyIds))
    .filter(({ config: { name }, isTargeted }) => mayUse(caller.key, name, isTargeted))
    .map((group) => group.config);
  const all = [
    ...limits.flatMap((group) => {
      const [pool, kind] = [ownPool(group), kindOfLimits(group.name)];
      if (pool === null || kind === null) return [];
      return [{ pool, kind, group, isOwn: kind === 'key', isShown: true }];
    }),
    ...groups.flatMap((group) => {
      const name = hashesPartitions(group, env) ? hashedId : caller.id;
      return configuredPools(group, caller, name, pools, config);
    }),
    ...(await automaticPools(env, table, caller, pools)),
  ];
  return {
    pools: all.toSorted((a, b) => Number(b.isOwn) - Number(a.isOwn)),
    mayUse: caller.key === null ? [] : groups.map(({ name }) => name),
  };
}

/** Returns the pools of a configured group. `name` is the caller's name in partitions of the group. */
function configuredPools(
  group: GroupConfig,
  caller: StatusCaller,
  name: string,
  pools: readonly PlacedPool[],
  config: Parameters<typeof takesCalls>[1],
): CallerPool[] {
  const isKnown = caller.key !== null;
  const base = { kind: 'configured' as const, group };
  const single = ownPool(group);
  if (single !== null) return [{ ...base, pool: single, isOwn: false, isShown: isKnown }];
  const at = ownPartAt(group, caller);
  const isAlone = at !== -1;
  const of = pools.filter((pool) => pool.group === group.name && takesCalls(pool, config));
  const shared = of.filter(({ partition }) => partition === OVERFLOW_PARTITION);
  const candidates = isAlone
    ? of.filter(({ partition }) => partition?.split(',')[at] === name)
    : of.filter((pool) => !shared.includes(pool));
  return [
    ...candidates.map((pool) => ({ ...base, pool, isOwn: isAlone, isShown: isAlone })),
    ...shared.map((pool) => ({ ...base, pool, isOwn: false, isShown: false })),
  ];
}

/** Returns the position of the partition value that identifies the caller alone, or -1 if there is none. */
function ownPartAt({ partition_by: by }: GroupConfig, { key }: StatusCaller): number {
  const at = by.indexOf('caller');
  // With a gateway key, the upstream may receive the operator's key, which many callers share.
  return at === -1 && key === null ? by.indexOf('api_key') : at;
}

async function automaticPools(
  env: Env,
  { snapshot, upstreams }: RoutingTable,
  caller: StatusCaller,
  pools: readonly PlacedPool[],
): Promise<CallerPool[]> {
  const found: CallerPool[] = [];
  const accounts = new Map<Upstream, string | null>();
  for (const pool of pools) {
    if (!pool.group.startsWith(AUTO_PREFIX) || !mayUse(caller.key, pool.group, true)) continue;
    const [id = ''] = pool.group.slice(AUTO_PREFIX.length).split('/');
    const upstream = upstreams.get(id);
    const secret = upstream?.secret ?? null;
    const injected = secret === null ? null : readSecret(env, secret);
    if (upstream !== undefined && isOfAccount(pool) && !accounts.has(upstream)) {
      const { fingerprint: print } = caller;
      const key = { injected: null, fingerprint: print };
      accounts.set(upstream, print === null ? null : await accountOfTaken(env, upstream, key));
    }
    const account = upstream === undefined ? null : (accounts.get(upstream) ?? null);
    const partitions = [
      null,
      account,
      OVERFLOW_PARTITION,
      caller.fingerprint,
      caller.key !== null && injected !== null
        ? await fingerprint(snapshot.fingerprintKey, injected)
        : null,
    ];
    if (!partitions.includes(pool.partition)) continue;
    const isOwn =
      caller.key === null &&
      pool.partition !== null &&
      [caller.fingerprint, account].includes(pool.partition);
    const group = definedGroup(snapshot.config, pool.group) ?? null;
    found.push({ pool, kind: 'automatic', group, isOwn, isShown: isOwn });
  }
  return found;
}

function isOfAccount({ partition }: PlacedPool): boolean {
  return partition?.startsWith(ACCOUNT_PREFIX) === true;
}

async function listedPools(env: Env): Promise<readonly PlacedPool[]> {
  if (listed !== null && steadyClock.now() - listed.at < LISTED_FOR_MS) return listed.pools;
  try {
    const pools = await within(ANSWER_MS_MAX, directoryOf(env).pools());
    listed = { at: steadyClock.now(), pools };
    return pools;
  } catch (error) {
    logEvent('directory_unreachable', { error: String(error) });
    return listed?.pools ?? [];
  }
}

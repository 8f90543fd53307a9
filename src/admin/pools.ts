import {
  isHeld,
  switchesOf,
  definedGroup,
  KEY_PREFIX,
  kindOfLimits,
  TEAM_PREFIX,
} from '../routing/implied-groups.ts';
import type { Config } from '../contract/config/config.ts';
import { ownPool } from '../routing/pool.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import { askPools, readDirectory, type PoolReply, type Directory } from '../overview/pools.ts';
import type { GroupRpc } from '../contract/rpc/group-rpc.ts';
import { ProblemError, type AdminContext } from './context.ts';

/** Returns the pools of a group. Throws if there is no such group. */
export function requirePools(directory: Directory, name: string): Directory['pools'] {
  const pools = poolsOf(directory, name);
  const { config } = directory;
  const isSet = config.groups.some((group) => group.name === name) || isHeldAuto(config, name);
  if (pools.length > 0 || isSet) return pools;
  throw name.startsWith(AUTO_PREFIX)
    ? new ProblemError(
        404,
        `No group \`${name}\` is known. An automatic group appears with its first successful call.`,
      )
    : noGroup(name);
}

/** Returns whether an operator has stopped an automatic group. It is then shown even without calls. */
function isHeldAuto(config: Config, name: string): boolean {
  return isHeld(switchesOf(config, name));
}

/**
 * Returns the pools of a group. Pools of keys' limits are not listed before their first 2xx, and there may be
 * thousands, so they are added only if one is requested by name.
 */
export function poolsOf({ pools, config }: Directory, name: string): Directory['pools'] {
  const known = pools.filter((pool) => pool.group === name);
  const group = kindOfLimits(name) === null ? undefined : definedGroup(config, name);
  const own = group === undefined ? null : ownPool(group);
  return known.length === 0 && own !== null ? [own] : known;
}

export function noAutoGroup(name: string): ProblemError {
  return new ProblemError(
    404,
    `There is no automatic group \`${name}\`. Expected \`auto:\` and the id of an enabled upstream, optionally followed by a slash and models that have a separate group.`,
  );
}

/** The problem that the configuration contains no group of this name. */
export function noGroup(name: string): ProblemError {
  if (name.startsWith(AUTO_PREFIX)) {
    return new ProblemError(
      404,
      `\`${name}\` is an automatic group without an entry. \`POST /groups/${encodeURIComponent(name)}/configure\` creates one, with its current limit.`,
    );
  }
  if (name.startsWith(KEY_PREFIX)) {
    return new ProblemError(
      404,
      `\`${name}\` is created from the limits of a key. Change these with \`PATCH /keys/${name.slice(KEY_PREFIX.length)}\`.`,
    );
  }
  if (name.startsWith(TEAM_PREFIX)) {
    return new ProblemError(
      404,
      `\`${name}\` is created from the limits of a team. Change these with \`PATCH /teams/${name.slice(TEAM_PREFIX.length)}\`.`,
    );
  }
  return new ProblemError(404, `There is no group \`${name}\`.`);
}

/** Asks all pools of a group. Throws if there is no such group. */
export async function askGroup<T>(
  { env }: AdminContext,
  name: string,
  ask: (pool: GroupRpc) => Promise<T>,
): Promise<PoolReply<T>[]> {
  const directory = await readDirectory(env);
  return askPools(env, directory.config, requirePools(directory, name), ask);
}

/** Returns the pools that did not respond, as shown in a response about several groups. */
export function unreachableAnywhere(
  asked: readonly PoolReply<unknown>[],
): { group: string; partition: string | null; error: string }[] {
  return asked.flatMap(({ pool: { group, partition }, ...one }) =>
    'error' in one ? [{ group, partition, error: one.error }] : [],
  );
}

/** Returns the pools that did not respond, as shown in a response about one group. */
export function unreachable(
  asked: readonly PoolReply<unknown>[],
): { partition: string | null; error: string }[] {
  return asked.flatMap((one) =>
    'error' in one ? [{ partition: one.pool.partition, error: one.error }] : [],
  );
}

import { isHeld, switchesOf } from '../routing/auto-group-switches.ts';
import type { Config } from '../contract/config/config.ts';
import { definedGroup, KEY_PREFIX, kindOfLimits, TEAM_PREFIX } from '../routing/key-groups.ts';
import { ownPool } from '../routing/pool.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { PoolReply, Directory } from '../overview/pools.ts';
import { ProblemError } from './problem.ts';

/** Finds the pools of a group, or throws that there is no such group. */
export function requirePools(directory: Directory, name: string): Directory['pools'] {
  const pools = poolsOf(directory, name);
  const { config } = directory;
  const isSet = config.groups.some((group) => group.name === name) || isHeldAuto(config, name);
  if (pools.length > 0 || isSet) return pools;
  throw name.startsWith(AUTO_PREFIX)
    ? new ProblemError(
        404,
        `Nothing is known of "${name}": an automatic group is shown from its first successful call on.`,
      )
    : noGroup(name);
}

/** Tells whether an operator has stopped an automatic group: then it is shown whether anybody calls it or not. */
function isHeldAuto(config: Config, name: string): boolean {
  return isHeld(switchesOf(config, name));
}

/**
 * Lists the pools of a group. Those of keys' limits are not listed before their first 2xx, and there may be
 * thousands, so they are looked for only where one is meant.
 */
export function poolsOf({ pools, config }: Directory, name: string): Directory['pools'] {
  const known = pools.filter((pool) => pool.group === name);
  const group = kindOfLimits(name) === null ? undefined : definedGroup(config, name);
  const own = group === undefined ? null : ownPool(group);
  return known.length === 0 && own !== null ? [own] : known;
}

/** Makes the problem that no call can belong to an automatic group of that name. */
export function noAutoGroup(name: string): ProblemError {
  return new ProblemError(
    404,
    `There is no automatic group "${name}": expected auto: and the id of an enabled upstream, and the models behind a slash where those have a group of their own.`,
  );
}

/** Makes the problem that no configuration holds a group of that name. */
export function noGroup(name: string): ProblemError {
  if (name.startsWith(AUTO_PREFIX)) {
    return new ProblemError(
      404,
      `"${name}" is an automatic group without an entry of its own: POST /groups/${encodeURIComponent(name)}/configure makes one, with the limit that it has now.`,
    );
  }
  if (name.startsWith(KEY_PREFIX)) {
    return new ProblemError(
      404,
      `"${name}" is made of the limits of a key. Change those: PATCH /keys/${name.slice(KEY_PREFIX.length)}.`,
    );
  }
  if (name.startsWith(TEAM_PREFIX)) {
    return new ProblemError(
      404,
      `"${name}" is made of the limits of a team. Change those: PATCH /teams/${name.slice(TEAM_PREFIX.length)}.`,
    );
  }
  return new ProblemError(404, `There is no group "${name}".`);
}

/** Lists the pools that did not answer, as an answer names them. */
export function unreachable(
  asked: readonly PoolReply<unknown>[],
): { partition: string | null; error: string }[] {
  return asked.flatMap((one) =>
    'error' in one ? [{ partition: one.pool.partition, error: one.error }] : [],
  );
}

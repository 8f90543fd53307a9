import type { Hono } from 'hono';
import type { Env } from '../../contract/env.ts';
import { AUTO_PREFIX } from '../../contract/pool-name.ts';
import { ProblemError } from './problem.ts';
import { askPools, readDirectory, type Asked, type Directory } from './pools.ts';

/** Looking at the leases of a group, and taking one back. */
export function addLeaseRoutes(app: Hono<{ Bindings: Env }>): void {
  app.get('/groups/:name/leases', async (context) => {
    const directory = await readDirectory(context.env);
    const pools = requirePools(directory, context.req.param('name'));
    const asked = await askPools(context.env, directory.config, pools, (pool) => pool.leases());
    const leases = asked.flatMap((one) =>
      'answer' in one
        ? one.answer.map((lease) => ({ ...lease, partition: one.pool.partition }))
        : [],
    );
    leases.sort((a, b) => b.age_ms - a.age_ms);
    return context.json({ leases, unreachable: unreachable(asked) });
  });

  app.delete('/groups/:name/leases/:id', async (context) => {
    const id = context.req.param('id');
    const name = context.req.param('name');
    const directory = await readDirectory(context.env);
    const pools = requirePools(directory, name);
    const asked = await askPools(context.env, directory.config, pools, (pool) => pool.revoke(id));
    if (asked.some((one) => 'answer' in one && one.answer)) {
      // Its holder aborts the upstream call first; the slot returns after that.
      return context.json({ id, state: 'revoking' }, 202);
    }
    const missing = unreachable(asked).length;
    if (missing > 0) {
      throw new ProblemError(
        503,
        `No pool of "${name}" that answered holds the lease "${id}"; ${missing} did not answer.`,
      );
    }
    throw new ProblemError(404, `No pool of "${name}" holds the lease "${id}".`);
  });
}

/** The pools of a group, or the problem that there is no such group. */
export function requirePools(directory: Directory, name: string): Directory['pools'] {
  const pools = directory.pools.filter((pool) => pool.group === name);
  if (pools.length > 0 || directory.config.groups.some((group) => group.name === name)) {
    return pools;
  }
  throw new ProblemError(
    404,
    name.startsWith(AUTO_PREFIX)
      ? `Nothing is known of "${name}": an automatic group is shown from its first successful call on.`
      : `There is no group "${name}".`,
  );
}

function unreachable(
  asked: readonly Asked<unknown>[],
): { partition: string | null; error: string }[] {
  return asked.flatMap((one) =>
    'error' in one ? [{ partition: one.pool.partition, error: one.error }] : [],
  );
}

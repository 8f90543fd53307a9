import type { Hono } from 'hono';
import { directoryOf, type Env } from '../../contract/env.ts';
import { ACTOR } from './change.ts';
import { askPools, readDirectory, requirePools, unreachable } from './pools.ts';
import { ProblemError } from './problem.ts';

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
      await directoryOf(context.env).note(ACTOR, `group ${name}: release lease ${id}`);
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

import { askPools, readDirectory } from '../overview/pools.ts';
import { note } from './change.ts';
import type { AdminApp } from './context.ts';
import { requirePools, unreachable } from './pools.ts';
import { ProblemError } from './problem.ts';
import { serve } from './serve.ts';

export function addLeaseRoutes(app: AdminApp): void {
  serve(app, 'listLeases', async ({ context, params: { name } }) => {
    const directory = await readDirectory(context.env);
    const pools = requirePools(directory, name);
    const asked = await askPools(context.env, directory.config, pools, (pool) => pool.leases());
    const leases = asked.flatMap((one) =>
      'answer' in one
        ? one.answer.map((lease) => ({ ...lease, partition: one.pool.partition }))
        : [],
    );
    leases.sort((a, b) => b.age_ms - a.age_ms);
    return { status: 200, body: { leases, unreachable: unreachable(asked) } };
  });

  serve(app, 'releaseLease', async ({ context, params: { name, id } }) => {
    const directory = await readDirectory(context.env);
    const pools = requirePools(directory, name);
    const asked = await askPools(context.env, directory.config, pools, (pool) => pool.revoke(id));
    if (asked.some((one) => 'answer' in one && one.answer)) {
      await note(context, `group ${name}: release lease ${id}`);
      // Its holder aborts the upstream call first. The slot is free after that.
      return { status: 202, body: { id, state: 'revoking' } };
    }
    const missing = unreachable(asked).length;
    if (missing > 0) {
      throw new ProblemError(
        503,
        `No responding pool of \`${name}\` holds the lease \`${id}\`, and ${missing} did not respond. Retry later.`,
      );
    }
    throw new ProblemError(404, `No pool of \`${name}\` holds the lease \`${id}\`.`);
  });
}

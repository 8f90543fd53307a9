import type { GroupRpc } from '../contract/rpc/group-rpc.ts';
import { mayWaitElsewhere, waitingElsewhere } from '../overview/all-groups.ts';
import { askAwake, askPools, readDirectory, type Directory } from '../overview/pools.ts';
import { note } from './change.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { requirePools, unreachable } from './pools.ts';
import { ProblemError } from './problem.ts';
import { serve } from './serve.ts';

export function addWaiterRoutes(app: AdminApp): void {
  serve(app, 'listWaiters', async ({ context, params: { name } }) => {
    const directory = await readDirectory(context.env);
    const pools = requirePools(directory, name);
    const asked = await askPools(context.env, directory.config, pools, (pool) => pool.waiters());
    // Each pool has its own order, so waiters of different pools are not merged.
    const waiters = asked.flatMap((one) =>
      'answer' in one
        ? one.answer.map((waiter) => ({ ...waiter, partition: one.pool.partition }))
        : [],
    );
    const elsewhere = await elsewhereOf(context, directory, name);
    return {
      status: 200,
      body: { waiters, waiting_elsewhere: elsewhere, unreachable: unreachable(asked) },
    };
  });

  serve(app, 'cancelWaiter', async ({ context, params: { name, ticket } }) => {
    await whereItWaits(context, name, ticket, (pool) => pool.dismiss(ticket));
    await note(context, `group ${name}: cancel waiter ${ticket}`);
    return { status: 200, body: { ticket, state: 'cancelled' } };
  });

  serve(app, 'promoteWaiter', async ({ context, params: { name, ticket }, body }) => {
    const { lane = null, first = lane === null } = body;
    await whereItWaits(context, name, ticket, (pool) => pool.promote(ticket, lane, first));
    const how = [first ? ' first' : '', lane === null ? '' : ` to lane ${lane}`].join('');
    await note(context, `group ${name}: promote waiter ${ticket}${how}`);
    return { status: 200, body: { ticket, lane, first } };
  });
}

/** Returns the other groups in which calls of a group are queued. Idle pools have no waiters, and are not woken. */
async function elsewhereOf(
  { env }: AdminContext,
  directory: Directory,
  name: string,
): Promise<{ group: string; calls: number }[]> {
  if (!mayWaitElsewhere(directory)) return [];
  const others = directory.pools.filter(({ group }) => group !== name);
  const reported = await askAwake(
    env,
    directory,
    others,
    (pool) => pool.status(),
    ({ status }) => status,
  );
  return [...(waitingElsewhere(reported).get(name) ?? [])];
}

/** Applies an action to a waiter in the pool where it is queued. Throws if it is in none. */
async function whereItWaits(
  context: AdminContext,
  name: string,
  ticket: string,
  work: (pool: GroupRpc) => Promise<boolean>,
): Promise<void> {
  const directory = await readDirectory(context.env);
  const pools = requirePools(directory, name);
  const asked = await askPools(context.env, directory.config, pools, work);
  if (asked.some((one) => 'answer' in one && one.answer)) return;
  const missing = unreachable(asked).length;
  if (missing > 0) {
    throw new ProblemError(
      503,
      `Ticket \`${ticket}\` is not queued in any responding pool of \`${name}\`, and ${missing} did not respond. Retry later.`,
    );
  }
  throw new ProblemError(404, `Ticket \`${ticket}\` is not queued in \`${name}\`.`);
}

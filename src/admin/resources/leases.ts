import * as z from 'zod';
import { groupName, groupParams } from '../shapes.ts';
import { route } from '../route.ts';
import { ProblemError, type AdminContext } from '../context.ts';
import { askGroup, requirePools, unreachable } from '../pools.ts';
import { note } from '../change.ts';
import { waitingElsewhere, mayWaitElsewhere } from '../../overview/all-groups.ts';
import { type Directory, askAwake, askPools, readDirectory } from '../../overview/pools.ts';
import { LANES } from '../../core/words/ticket.ts';
import type { GroupRpc } from '../../contract/rpc/group-rpc.ts';
import {
  leaseSchema,
  unreachableSchema,
  waiterSchema,
  waitingElsewhereSchema,
} from '../../contract/group-status.ts';

const leaseParams = z.strictObject({
  name: groupName,
  id: z.string().min(1).max(300).describe('Id of the lease.'),
});

const waiterParams = z.strictObject({
  name: groupName,
  ticket: z.string().min(1).max(300).describe('Id of the ticket.'),
});

/** An empty body means `first`. */
const promotionSchema = z.strictObject({
  lane: z.enum(LANES).optional().describe('New lane. Defaults to its current lane.'),
  first: z
    .boolean()
    .optional()
    .describe(
      'Whether to put it before all other waiters. Defaults to true, unless a lane is given.',
    ),
});

export const LEASE_ROUTES = {
  listLeases: route('GET /groups/{name}/leases', {
    tag: 'groups',
    summary: 'List the leases of a group, the oldest first',
    role: 'viewer',
    params: groupParams,
    answers: {
      200: z.object({
        leases: z.array(leaseSchema).describe('Leases, the oldest first.'),
        unreachable: unreachableSchema,
      }),
    },
    problems: [404],
  }).servedBy(async ({ context, params: { name } }) => {
    const asked = await askGroup(context, name, (pool) => pool.leases());
    const leases = asked.flatMap((one) =>
      'answer' in one
        ? one.answer.map((lease) => ({ ...lease, partition: one.pool.partition }))
        : [],
    );
    leases.sort((a, b) => b.age_ms - a.age_ms);
    return { status: 200, body: { leases, unreachable: unreachable(asked) } };
  }),

  releaseLease: route('DELETE /groups/{name}/leases/{id}', {
    tag: 'groups',
    summary: 'Revoke a lease',
    description: 'Aborts the upstream call first. The slot becomes free after that.',
    role: 'operator',
    params: leaseParams,
    answers: {
      202: z.object({
        id: z.string().describe('Id of the lease.'),
        state: z.literal('revoking').describe('Its holder was notified.'),
      }),
    },
    problems: [404],
  }).servedBy(async ({ context, params: { name, id } }) => {
    const asked = await askGroup(context, name, (pool) => pool.revoke(id));
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
  }),

  listWaiters: route('GET /groups/{name}/waiters', {
    tag: 'groups',
    summary: 'List the waiters of a group, in the order in which they will probably be granted',
    role: 'viewer',
    params: groupParams,
    answers: {
      200: z.object({
        waiters: z.array(waiterSchema).describe('Waiters, the next one first.'),
        waiting_elsewhere: waitingElsewhereSchema,
        unreachable: unreachableSchema,
      }),
    },
    problems: [404],
  }).servedBy(async ({ context, params: { name } }) => {
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
  }),

  cancelWaiter: route('DELETE /groups/{name}/waiters/{ticket}', {
    tag: 'groups',
    summary: 'Remove a call from the queue',
    description: 'The call is rejected as `cancelled`.',
    role: 'operator',
    params: waiterParams,
    answers: {
      200: z.object({
        ticket: z.string().describe('Id of the ticket.'),
        state: z.literal('cancelled').describe('The call is being rejected.'),
      }),
    },
    problems: [404],
  }).servedBy(async ({ context, params: { name, ticket } }) => {
    await whereItWaits(context, name, ticket, (pool) => pool.dismiss(ticket));
    await note(context, `group ${name}: cancel waiter ${ticket}`);
    return { status: 200, body: { ticket, state: 'cancelled' } };
  }),

  promoteWaiter: route('POST /groups/{name}/waiters/{ticket}/promote', {
    tag: 'groups',
    summary: 'Move a call to the front, into another lane, or both',
    role: 'operator',
    params: waiterParams,
    body: promotionSchema,
    isBodyOptional: true,
    answers: {
      200: z.object({
        ticket: z.string().describe('Id of the ticket.'),
        lane: z.enum(LANES).nullable().describe('Requested lane. null if there is none.'),
        first: z.boolean().describe('Whether it was moved to the front.'),
      }),
    },
    problems: [404],
  }).servedBy(async ({ context, params: { name, ticket }, body }) => {
    const { lane = null, first = lane === null } = body;
    await whereItWaits(context, name, ticket, (pool) => pool.promote(ticket, lane, first));
    const how = [first ? ' first' : '', lane === null ? '' : ` to lane ${lane}`].join('');
    await note(context, `group ${name}: promote waiter ${ticket}${how}`);
    return { status: 200, body: { ticket, lane, first } };
  }),
};

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
  const asked = await askGroup(context, name, work);
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

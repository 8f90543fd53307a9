import type { Hono } from 'hono';
import * as z from 'zod';
import { directoryOf, type Env } from '../../contract/env.ts';
import type { GroupRpc } from '../../contract/group-rpc.ts';
import { explainIssues } from '../../contract/import-errors.ts';
import { LANES } from '../../core/ticket.ts';
import { ACTOR, invalid, readDocument, type AdminContext } from './change.ts';
import { askPools, readDirectory, requirePools, unreachable } from './pools.ts';
import { ProblemError } from './problem.ts';

/** Nothing at all means `first`. */
const promotionSchema = z.strictObject({
  lane: z.enum(LANES).optional(),
  first: z.boolean().optional(),
});

/** Looking at who waits in a group, taking one out, and letting one go first. */
export function addWaiterRoutes(app: Hono<{ Bindings: Env }>): void {
  app.get('/groups/:name/waiters', async (context) => {
    const directory = await readDirectory(context.env);
    const pools = requirePools(directory, context.req.param('name'));
    const asked = await askPools(context.env, directory.config, pools, (pool) => pool.waiters());
    // Each pool has an order of its own, so those of different pools are not put into one.
    const waiters = asked.flatMap((one) =>
      'answer' in one
        ? one.answer.map((waiter) => ({ ...waiter, partition: one.pool.partition }))
        : [],
    );
    return context.json({ waiters, unreachable: unreachable(asked) });
  });

  app.delete('/groups/:name/waiters/:ticket', async (context) => {
    const { name, ticket } = context.req.param();
    await whereItWaits(context, name, ticket, (pool) => pool.dismiss(ticket));
    await directoryOf(context.env).note(ACTOR, `group ${name}: cancel waiter ${ticket}`);
    return context.json({ ticket, state: 'cancelled' });
  });

  app.post('/groups/:name/waiters/:ticket/promote', async (context) => {
    const { name, ticket } = context.req.param();
    const { lane = null, first = lane === null } = await readPromotion(context);
    await whereItWaits(context, name, ticket, (pool) => pool.promote(ticket, lane, first));
    const how = [first ? ' first' : '', lane === null ? '' : ` to lane ${lane}`].join('');
    await directoryOf(context.env).note(ACTOR, `group ${name}: promote waiter ${ticket}${how}`);
    return context.json({ ticket, lane, first });
  });
}

async function readPromotion(context: AdminContext): Promise<z.output<typeof promotionSchema>> {
  const document = (await readDocument(context)) ?? {};
  const parsed = promotionSchema.safeParse(document);
  if (!parsed.success) throw invalid(explainIssues(parsed.error, promotionSchema, document));
  return parsed.data;
}

/** Does something to a waiter in whichever pool it stands, or says that it stands in none. */
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
      `The ticket "${ticket}" waits in no pool of "${name}" that answered; ${missing} did not answer.`,
    );
  }
  throw new ProblemError(404, `The ticket "${ticket}" does not wait in "${name}".`);
}

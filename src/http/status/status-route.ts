import type { Context } from 'hono';
import type { Env } from '../../env.ts';
import { ProblemError, problemResponse } from '../../admin/problem.ts';
import { identify } from '../../call/identity/authenticate.ts';
import { sureTable, type RoutingTable } from '../../config/snapshots.ts';
import type { StatusCaller } from './caller-pools.ts';
import { callerStatus } from './caller-status.ts';

type StatusContext = Context<{ Bindings: Env }>;

/** Answers `GET /status`: a caller's own calls and limits. */
export async function status(context: StatusContext): Promise<Response> {
  try {
    const table = await requireTable(context);
    const caller = await callerOf(table, context.req.raw.headers);
    const body = await callerStatus(context.env, table, caller);
    return Response.json(body, { headers: { 'cache-control': 'no-store' } });
  } catch (error) {
    return problemResponse(error);
  }
}

async function requireTable({ env, executionCtx }: StatusContext): Promise<RoutingTable> {
  const table = await sureTable(env, executionCtx);
  if (table === null) throw new ProblemError(503, 'The directory cannot be reached at the moment.');
  return table;
}

/**
 * Finds out who asks, by the same rules as for calls; but a key in the query is none: addresses end up in
 * logs and histories.
 */
async function callerOf(table: RoutingTable, headers: Headers): Promise<StatusCaller> {
  const identified = await identify(table, headers, new URLSearchParams());
  if (identified.kind === 'rejected') throw notKnown(identified.reply.message);
  const { caller } = identified;
  const key = table.snapshot.config.keys.find(({ id }) => id === caller.gatewayKeyId) ?? null;
  if (key === null && caller.fingerprint === null) {
    throw notKnown('Send the provider key of your calls, as you send it with them.');
  }
  return { id: caller.id, key, fingerprint: caller.fingerprint };
}

function notKnown(detail: string): ProblemError {
  const headers = { 'www-authenticate': 'Bearer realm="headgate-status"' };
  return new ProblemError(401, detail, { headers });
}

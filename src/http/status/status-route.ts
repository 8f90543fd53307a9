import type { Context } from 'hono';
import type { Env } from '../../env.ts';
import { ProblemError, problemResponse } from '../../admin/problem.ts';
import type { CallerStatus } from '../../contract/caller-status.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { EachSecond, steadyClock } from '../../runtime/clock.ts';
import {
  delayNewKey,
  delayUnknownKey,
  isFamiliar,
  namesAnywhere,
  takePlace,
} from '../../call/identity/new-keys.ts';
import { identify } from '../../call/identity/authenticate.ts';
import { isolateConfig } from '../../config/isolate-config.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { StatusCaller } from './caller-pools.ts';
import { callerStatus } from './caller-status.ts';

/** Maximum keys without a success per second for which all pools are queried. Callers rarely have such keys. */
const STRANGERS_A_SECOND = 2;

const strangers = new EachSecond(STRANGERS_A_SECOND);

type StatusContext = Context<{ Bindings: Env }>;

/** Handles `GET /status`: a caller's own calls and limits. */
export async function status(context: StatusContext): Promise<Response> {
  try {
    const table = await requireTable(context);
    const caller = await callerOf(table, context);
    const body = await statusFor(table, caller, context);
    return Response.json(body, { headers: { 'cache-control': 'no-store' } });
  } catch (error) {
    return problemResponse(error);
  }
}

async function requireTable({ env, executionCtx }: StatusContext): Promise<RoutingTable> {
  const table = await isolateConfig.confirmed(env, executionCtx);
  if (table === null) {
    throw new ProblemError(503, 'The directory is unreachable at the moment. Retry later.');
  }
  return table;
}

/**
 * Returns the status of a caller. A provider key without a success or a running call may be made up, so it is delayed
 * and rejected like its calls. Above a number of such keys per second, only the key's own pools are queried.
 */
async function statusFor(
  table: RoutingTable,
  caller: StatusCaller,
  { env, req }: StatusContext,
): Promise<CallerStatus> {
  const { key, fingerprint } = caller;
  const names = ['v1', ...table.upstreams.keys()].map((id) => `${id} ${fingerprint}`);
  if (key !== null || isFamiliar([...names, ...namesAnywhere(caller)])) {
    return callerStatus(env, table, caller, () => true);
  }
  const name = `status ${fingerprint}`;
  const asked = { request: req.raw, env };
  const place = takePlace(asked, name);
  if (place.kind === 'rejected') throw tooManyKeys(place.reply);
  try {
    await delayNewKey(asked, name, []);
    const maySeeAll = (): boolean => strangers.mayOneMore(steadyClock.now());
    return await callerStatus(env, table, caller, maySeeAll);
  } finally {
    place.leave();
  }
}

function tooManyKeys({ message, retryAfterMs = 1_000 }: ErrorReply): ProblemError {
  const headers = { 'retry-after': String(Math.ceil(retryAfterMs / 1_000)) };
  return new ProblemError(429, message, { headers });
}

/**
 * Identifies the caller by the same rules as for calls, except that a key in the query is not accepted, because
 * addresses end up in logs and histories.
 */
async function callerOf(table: RoutingTable, { env, req }: StatusContext): Promise<StatusCaller> {
  const request = req.raw;
  const identified = await identify(table, request.headers, new URLSearchParams());
  if (identified.kind === 'rejected') {
    const { reason, message } = identified.reply;
    if (reason === 'key_invalid') await delayUnknownKey({ request, env });
    throw notKnown(message);
  }
  const { caller } = identified;
  const key = table.snapshot.config.keys.find(({ id }) => id === caller.gatewayKeyId) ?? null;
  if (key === null && caller.fingerprint === null) {
    throw notKnown('No key was sent. Send the provider key in the same way as with your calls.');
  }
  return { id: caller.id, key, fingerprint: caller.fingerprint };
}

function notKnown(detail: string): ProblemError {
  const headers = { 'www-authenticate': 'Bearer realm="headgate-status"' };
  return new ProblemError(401, detail, { headers });
}

import type { Context } from 'hono';
import { ProblemError, problemResponse } from '../../admin/problem.ts';
import { reportEnd } from '../../call/answer/end-run.ts';
import { isolateConfig } from '../../config/isolate-config.ts';
import type { Env } from '../../env.ts';
import { unsupportedBody } from '../../runtime/origin.ts';
import { readSecret, secretFault } from '../../runtime/secrets.ts';
import { isSigned } from '../../runtime/webhook.ts';
import { BODY_BROKEN, readOwnBody } from '../../upstream/body/bytes.ts';

/** Maximum length of a message. Messages about runs contain little more than the id. */
const BYTES_MAX = 65_536;

/** Types of events that report the end of a run, such as `response.completed`. */
const ENDED = /\.(?:completed|succeeded|failed|incomplete|expired)$/;
const CANCELLED = /\.cancell?ed$/;

/** Handles `POST /webhooks/{upstream}`: signed reports of a provider about its runs. */
export async function webhook(context: Context<{ Bindings: Env }>): Promise<Response> {
  try {
    return await take(context);
  } catch (error) {
    if (error instanceof ProblemError) return problemResponse(error);
    throw error;
  }
}

async function take({ env, req, executionCtx }: Context<{ Bindings: Env }>): Promise<Response> {
  const id = req.param('upstream') ?? '';
  const table = await isolateConfig.forPool(env, executionCtx);
  if (table === null) {
    throw new ProblemError(503, 'The configuration is unreachable at the moment. Retry later.');
  }
  const entry = table.snapshot.config.upstreams.find((upstream) => upstream.id === id);
  const name = entry?.webhook_secret ?? null;
  if (name === null) {
    throw new ProblemError(
      404,
      'No upstream with this id has a `webhook_secret`. Set it in the configuration.',
    );
  }
  const secret = readSecret(env, name);
  if (secret === null) {
    throw new ProblemError(503, `The secret \`${name}\` ${secretFault(env, name)}. Set it.`);
  }
  const unsupported = await unsupportedBody(req.raw);
  if (unsupported !== null) throw new ProblemError(415, unsupported.message);
  const read = await readOwnBody(req.raw, BYTES_MAX);
  if (read.kind === 'broken') throw new ProblemError(400, BODY_BROKEN);
  if (read.kind === 'too long') {
    throw new ProblemError(413, `The message is too large. The maximum is ${BYTES_MAX} bytes.`);
  }
  const body = new TextDecoder().decode(read.bytes);
  if (!isSigned(req.raw.headers, body, secret)) {
    throw new ProblemError(401, 'The signature does not match the secret, or is too old.');
  }
  const end = endOf(body);
  // The provider retries the message.
  const isReported = end === null || (await reportEnd(env, table, id, end));
  if (!isReported) {
    throw new ProblemError(
      503,
      'The object that holds the slots of the run is unreachable. Retry later.',
    );
  }
  return new Response(null, { status: 204 });
}

/** Parses which run has ended. Returns null for other messages. */
function endOf(body: string): { id: string; outcome: 'success' | 'cancelled' } | null {
  try {
    const { type, data } = JSON.parse(body) as { type?: unknown; data?: { id?: unknown } };
    const id = data?.id;
    if (typeof type !== 'string' || typeof id !== 'string') return null;
    if (CANCELLED.test(type)) return { id, outcome: 'cancelled' };
    return ENDED.test(type) ? { id, outcome: 'success' } : null;
  } catch {
    throw new ProblemError(400, 'The message is not valid JSON.');
  }
}

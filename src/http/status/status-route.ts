import type { Context } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { Env } from '../../env.ts';
import { readCredentials } from '../../upstream/transfer/credentials.ts';
import { ProblemError, problemResponse } from '../../admin/problem.ts';
import { identify } from '../../call/identity/authenticate.ts';
import { gatewayKeyHash } from '../../runtime/fingerprint.ts';
import { routingTable, type RoutingTable } from '../../config/snapshots.ts';
import type { StatusCaller } from './caller-pools.ts';
import { callerStatus } from './caller-status.ts';
import { keyPage, pagePolicy, statusPage } from './status-page.ts';
import { forgetCaller, rememberCaller, rememberedCaller } from './status-session.ts';

type StatusContext = Context<{ Bindings: Env }>;

/** How often a browser reads the page again, in seconds. */
const REFRESH_S = 5;

/** A form with one key in it. */
const FORM_BYTES_MAX = 16_384;

/** `GET /status`: a caller's own calls and limits, as JSON or for a browser as a page. */
export async function status(context: StatusContext): Promise<Response> {
  const wantsPage = /\btext\/html\b/i.test(context.req.header('accept') ?? '');
  try {
    const table = await requireTable(context);
    const { headers } = context.req.raw;
    const { gatewayKey, providerKey } = readCredentials(headers, new URLSearchParams());
    const isGiven = gatewayKey !== null || providerKey !== null;
    const remembered = isGiven ? null : await rememberedCaller(context, table);
    const caller = remembered ?? (await callerOf(table, headers));
    if ('message' in caller) {
      return wantsPage ? await askForKey(context, null) : notKnown(caller.message);
    }
    const body = await callerStatus(context.env, table, caller);
    return wantsPage ? await show(context, await statusPage(body), 200, true) : answer(body);
  } catch (error) {
    return problemResponse(error);
  }
}

/** `POST /status`: the form of that page, which has the key in its body. */
export async function statusForm(context: StatusContext): Promise<Response> {
  try {
    const table = await requireTable(context);
    const form = await context.req.parseBody();
    if (form['forget'] !== undefined) {
      forgetCaller(context);
      return await askForKey(context, null, 200);
    }
    const given = typeof form['key'] === 'string' ? form['key'].trim() : '';
    if (!/^[\x21-\x7e]{1,4000}$/.test(given)) {
      return await askForKey(context, 'That is no key: keys are one word of plain characters.');
    }
    const headers = new Headers(
      table.keys.size > 0 ? { 'headgate-key': given } : { authorization: `Bearer ${given}` },
    );
    const caller = await callerOf(table, headers);
    if ('message' in caller) return await askForKey(context, caller.message);
    const hash = caller.key === null ? null : await gatewayKeyHash(given);
    await rememberCaller(context, table, caller, hash);
    const body = await callerStatus(context.env, table, caller);
    return await show(context, await statusPage(body), 200, true);
  } catch (error) {
    return problemResponse(error);
  }
}

/** Refuses bodies that are no such form. */
export const limitForm = bodyLimit({
  maxSize: FORM_BYTES_MAX,
  onError: () =>
    new ProblemError(413, `The form may have at most ${FORM_BYTES_MAX} bytes.`).toResponse(),
});

async function requireTable({ env, executionCtx }: StatusContext): Promise<RoutingTable> {
  const table = await routingTable(env, executionCtx);
  if (table === null) throw new ProblemError(503, 'The directory cannot be reached at the moment.');
  return table;
}

/**
 * Who asks, by the same rules as for calls; but a key in the query is none: addresses end up in logs and
 * histories.
 */
async function callerOf(
  table: RoutingTable,
  headers: Headers,
): Promise<StatusCaller | { readonly message: string }> {
  const caller = await identify(table, headers, new URLSearchParams());
  if ('reason' in caller) return { message: caller.message };
  const key = table.snapshot.config.keys.find(({ id }) => id === caller.gatewayKeyId) ?? null;
  if (key === null && caller.fingerprint === null) {
    return { message: 'Send the provider key of your calls, as you send it with them.' };
  }
  return { id: caller.id, key, fingerprint: caller.fingerprint };
}

function notKnown(detail: string): Response {
  const headers = { 'www-authenticate': 'Bearer realm="headgate-status"' };
  return new ProblemError(401, detail, { headers }).toResponse();
}

function answer(body: object): Response {
  return Response.json(body, { headers: { 'cache-control': 'no-store', vary: 'accept' } });
}

async function askForKey(
  context: StatusContext,
  message: string | null,
  code: 200 | 401 = 401,
): Promise<Response> {
  return show(context, await keyPage(message), code, false);
}

/** Not a `Response` of our own, which would have none of the cookies that were set meanwhile. */
async function show(
  context: StatusContext,
  page: string,
  code: 200 | 401,
  isRefreshed: boolean,
): Promise<Response> {
  return context.html(page, code, {
    'content-security-policy': await pagePolicy(),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    vary: 'accept',
    ...(isRefreshed ? { refresh: `${REFRESH_S}; url=/status` } : {}),
  });
}

import { Hono, type Context } from 'hono';
import { secureHeaders } from 'hono/secure-headers';
import type { Env } from '../env.ts';
import { wrongPlace, builtFilesAt, NOT_BUILT, readAsset } from '../runtime/deployment.ts';
import {
  howToSet,
  membersWithoutSecret,
  refusedSecrets,
  secretFault,
  whereIsAdminToken,
  withoutSecret,
  readSecret,
} from '../runtime/secrets.ts';
import { isolateConfig } from '../config/isolate-config.ts';
import { ProblemError, problemResponse } from '../admin/context.ts';
import { reportEnd } from '../call/answer/end-run.ts';
import { unsupportedBody } from '../runtime/origin.ts';
import { isSigned } from '../runtime/webhook.ts';
import { BODY_BROKEN, readOwnBody } from '../upstream/body/bytes.ts';

/** Headgate's own routes outside of the admin API: the home page, the dashboard, and webhooks of upstreams. */

/** Describes what this service is, how to use it, and what is missing from its set-up. */
export async function home(context: Context<{ Bindings: Env }>): Promise<Response> {
  const { env, executionCtx, req } = context;
  const wrong = wrongPlace(env);
  const table = wrong === null ? await isolateConfig.confirmed(env, executionCtx) : null;
  const origin = new URL(req.url).origin;
  const adminFault = secretFault(env, 'ADMIN_TOKEN');
  const groups = table?.snapshot.config.groups.length ?? 0;
  const keys = table?.snapshot.config.keys.length ?? 0;
  const missing = withoutSecret(env, table?.upstreams.values() ?? []);
  const ofMembers = membersWithoutSecret(env, table?.snapshot.config.groups ?? []);
  return context.text(
    [
      'Headgate limits concurrent LLM calls across all clients that share a key.',
      '',
      `Use it: set the base URL of your client, and ${keys === 0 ? 'keep your provider key' : 'send a gateway key, in the header headgate-key or as the API key'}.`,
      `  OpenAI      ${origin}/openai/v1`,
      `  Anthropic   ${origin}/anthropic`,
      `  Gemini      ${origin}/gemini`,
      `  any model   ${origin}/v1   with models such as openai/gpt-4o`,
      '',
      'Set up:',
      `  Directory      ${table === null ? (wrong ?? 'UNREACHABLE: calls may be rejected until it responds') : 'ready'}`,
      ...(table === null ? [] : [`  Configuration  version ${table.snapshot.version}`]),
      `  Admin routes   ${adminFault === null ? `open at ${origin}/admin/api with the ADMIN_TOKEN (${whereIsAdminToken(env, req.url)})` : `DISABLED: the secret ADMIN_TOKEN ${adminFault}. Set it: ${howToSet(env, 'ADMIN_TOKEN', req.url)}`}`,
      `  Dashboard      ${origin}/admin`,
      `  Groups         ${groups === 0 ? 'none configured: every provider key has an automatic group with its known or assumed limit' : `${groups} configured`}`,
      `  Gateway keys   ${keys === 0 ? 'none configured: callers bring their own provider keys' : `${keys} configured`}`,
      ...refusedSecrets(env).map(
        ({ secret, fault }) =>
          `  Secrets        UNUSABLE: the secret ${secret} ${fault}. Set it: ${howToSet(env, secret, req.url)}`,
      ),
      ...missing.map(
        ({ id, secret, fault }) =>
          `  Upstream keys  MISSING: the secret ${secret} ${fault}, so calls to ${id} are rejected. Set it: ${howToSet(env, secret, req.url)}`,
      ),
      ...ofMembers.map(
        ({ group, member, secret, fault }) =>
          `  Upstream keys  MISSING: the secret ${secret} ${fault}, so no calls of ${group} run at ${member}. Set it: ${howToSet(env, secret, req.url)}`,
      ),
      '',
    ].join('\n'),
  );
}

/** Content types by file extension, because a folder that workerd serves has none. */
const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  ico: 'image/x-icon',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  png: 'image/png',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
  woff2: 'font/woff2',
};

/** Names of built files. Other paths never reach the files. */
const BUILT_FILE = /^\/admin(\/assets\/[\w-][\w.-]*\.(\w+))$/;

/** Caching of files whose names change with their content. */
const FOR_GOOD = 'public, max-age=31536000, immutable';

type DashboardContext = Context<{ Bindings: Env }>;

/**
 * Serves the page and the files of the dashboard at `/admin`, after the admin API. They need no authentication and are
 * the same for all users, because all data on the page comes from the API.
 */
export function createDashboardRoutes(): Hono<{ Bindings: Env }> {
  const app = new Hono<{ Bindings: Env }>();
  app.use(
    '*',
    secureHeaders({
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        scriptSrc: [builtFiles],
        styleSrc: [builtFiles],
        imgSrc: [builtFiles, 'data:'],
        connectSrc: ["'self'"],
        fontSrc: [builtFiles],
        baseUri: ["'none'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
      },
      xFrameOptions: 'DENY',
      // HSTS applies to all paths of a host, so its owner must decide about it.
      strictTransportSecurity: false,
    }),
  );
  app.get('/assets/*', builtFile);
  // The page itself resolves its paths.
  app.get('*', page);
  return app;
}

function builtFiles({ req }: Context): string {
  return builtFilesAt(req.url);
}

/** Redirects browsers to the icon of the page. They request `/favicon.ico` on any page. */
export async function favicon(context: DashboardContext): Promise<Response> {
  const html = await (await readBuilt(context, '/index.html'))?.text();
  const [, icon] = /href="(\/admin\/assets\/icon-[\w.-]+\.svg)"/.exec(html ?? '') ?? [];
  return icon === undefined ? context.body(null, 204) : context.redirect(icon);
}

async function builtFile(context: DashboardContext): Promise<Response> {
  const [, path = null, end = ''] = BUILT_FILE.exec(context.req.path) ?? [];
  const file = path === null ? null : await readBuilt(context, path);
  if (file === null) return context.text('File not found.\n', 404);
  return answer(file, TYPES[end] ?? 'application/octet-stream', FOR_GOOD);
}

async function page(context: DashboardContext): Promise<Response> {
  const file = await readBuilt(context, '/index.html');
  if (file === null) return context.text(NOT_BUILT, 503);
  return answer(file, TYPES['html'] ?? '', 'no-cache');
}

function readBuilt({ env, req }: DashboardContext, path: string): Promise<Response | null> {
  return readAsset(env, path, req.header('if-none-match'));
}

function answer({ body, status, headers }: Response, type: string, caching: string): Response {
  const etag = headers.get('etag');
  return new Response(body, {
    status,
    headers: {
      'content-type': type,
      'cache-control': caching,
      ...(etag === null ? {} : { etag }),
    },
  });
}

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

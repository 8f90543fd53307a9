import { Hono, type Context, type MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import type { Result, Router } from 'hono/router';
import { TrieRouter } from 'hono/router/trie-router';
import { getPath } from 'hono/utils/url';
import {
  SERVED_METHODS,
  READING_METHODS,
  DEPARTED_PATH,
  STOPPING_PATH,
  type Stopping,
} from '../contract/http.ts';
import type { ErrorReply } from '../contract/reasons.ts';
import { isolateConfig } from '../config/isolate-config.ts';
import { calledUrl, callsInFlight, departures } from '../call/request/call.ts';
import { errorShape } from '../call/request/choose-path.ts';
import type { RefusedRequest } from '../call/observe/note-refusal.ts';
import { rejectedResponse } from '../call/answer/respond.ts';
import { rejected } from '../call/results/result.ts';
import { directoryOf, type Env } from '../env.ts';
import type { Background } from '../runtime/async.ts';
import { foreignChange } from '../runtime/origin.ts';
import { logEvent } from '../runtime/log.ts';
import { wrongPlace } from '../runtime/deployment.ts';
import { createAdminRoutes } from '../admin/routes.ts';
import { ProblemError, problemResponse } from '../admin/context.ts';
import { rootIsNoRoute } from '../call/request/base-url.ts';
import { leases } from '../call/leases/lease-routes.ts';
import { proxy } from '../call/handle.ts';
import { openSockets } from '../call/answer/session.ts';
import { askPools, readDirectory } from '../overview/pools.ts';
import { MALFORMED_PATH, malformedReply, unservedMethod } from './malformed.ts';
import { createDashboardRoutes, favicon, webhook, home } from './own-routes.ts';
import { metrics } from './metrics.ts';
import { status } from './status-route.ts';

/**
 * Entry point: one table of routes. Its last route serves all calls. Before the table, requests are rejected that are
 * not served whatever their route, and CORS applies to Headgate's own routes.
 */

const SERVED: ReadonlySet<string> = new Set(SERVED_METHODS);

/** Whether the first segment of a URL belongs to Headgate's own routes. */
type OwnUrlTest = (url: string) => boolean;

/** Rejects a request that is not served, whatever its route. Returns null if it is served. */
export function refusedAtDoor(
  method: string,
  asked: RefusedRequest,
  isOwn: OwnUrlTest,
): Response | null {
  const { url } = asked.request;
  const { ALLOWED_HOSTS: hosts } = asked.env;
  if (!SERVED.has(method)) return errorAt(url, unservedMethod(), asked, isOwn);
  if (hosts === undefined || isAllowed(url, hosts)) return null;
  const message =
    'The `Host` header names a host that this Headgate does not serve. It listens only on this machine and serves only `localhost`, `127.0.0.1` and `[::1]`, because a web page could reach it under any other name. Use one of these, or start Headgate with `--allow-host` and the name.';
  return errorAt(url, { reason: 'host_unknown', message }, asked, isOwn);
}

/** Rejects a malformed HTTP request, in the dialect of its path if it has one. */
export function malformed(asked: RefusedRequest, isOwn: OwnUrlTest): Response {
  const { origin, pathname } = new URL(asked.request.url);
  const [what = '', ...path] = pathname.slice(MALFORMED_PATH.length).split('/');
  const called = `${origin}/${path.join('/')}`;
  const request = { headers: asked.request.headers, url: called };
  return errorAt(called, malformedReply(what), { ...asked, request }, isOwn);
}

function errorAt(
  url: string,
  reply: ErrorReply,
  asked: RefusedRequest,
  isOwn: OwnUrlTest,
): Response {
  if (isOwn(url)) return rejectedResponse('opaque', rejected(reply), asked);
  const table = isolateConfig.copy;
  const shape = errorShape({ method: 'GET' }, calledUrl(url, table), table);
  return rejectedResponse(shape, rejected(reply), asked);
}

/** Cached pattern for the value of `ALLOWED_HOSTS`, which is the same for all calls. */
let allowed = { hosts: '', pattern: patternOf('') };

function isAllowed(url: string, hosts: string): boolean {
  if (allowed.hosts !== hosts) allowed = { hosts, pattern: patternOf(hosts) };
  return allowed.pattern.test(url);
}

/** Returns a pattern of URLs with one of these hosts and any port. An empty name matches no host. */
function patternOf(hosts: string): RegExp {
  const names = hosts.split(',').map((name) => name.replace(/[^\w-]/g, '\\$&'));
  return new RegExp(`^[^/]+//(?=[^/?:])(?:${names.join('|')})(?::\\d*)?(?:[/?]|$)`, 'i');
}

type Front = MiddlewareHandler<{ Bindings: Env }>;

/** Time for which a browser caches the response to a preflight, in seconds. */
const PREFLIGHT_S = 600;

/** Headers that scripts may read from responses of the admin API and the status. */
const EXPOSED = ['etag', 'retry-after', 'www-authenticate'];

/**
 * Headers that scripts of other origins may send to the admin API. The header that goes with its cookie is not
 * included, because a cookie signs in only the pages of this host.
 */
const OF_ADMIN = ['authorization', 'content-type', 'if-match'];

/** Allows pages of configured origins to use the admin API, with a token in `Authorization`. */
export const adminCors: Front = forConfigured(OF_ADMIN);

/** Allows them to request the status. Any header is allowed, because keys may come in as many headers as in calls. */
export const statusCors: Front = forConfigured([]);

/**
 * Creates middleware that allows only pages of configured origins to read the responses. Credentials are not allowed,
 * so that browsers send neither cookies nor what Cloudflare Access stores for the host.
 */
function forConfigured(allowHeaders: readonly string[]): Front {
  const withCors = cors({
    origin: (origin) => origin,
    allowMethods: ['GET', 'PUT', 'PATCH', 'POST', 'DELETE'],
    allowHeaders: [...allowHeaders],
    exposeHeaders: EXPOSED,
    maxAge: PREFLIGHT_S,
  });
  return async (context, next) =>
    (await isConfigured(context)) ? withCors(context, next) : next();
}

async function isConfigured({ req, env, executionCtx }: Context<{ Bindings: Env }>) {
  const origin = req.header('origin');
  if (origin === undefined) return false;
  const table = await isolateConfig.forPool(env, executionCtx);
  return table?.snapshot.config.cors_origins.includes(origin) ?? false;
}

/** The first segment of a URL's path, with its escapes. Repeated slashes count as one. */
const FIRST_SEGMENT = /^[^/]+\/\/[^/]+\/*([^/?]*)/;

/** Path of all calls in the table. Their own paths are of no interest there. */
const CALLED = '/*';

type App = Hono<{ Bindings: Env }>;

export function createApp(): ExportedHandler<Env> {
  const ownSegments = new Set<string>();
  const isOwn = (url: string): boolean => ownSegments.has(FIRST_SEGMENT.exec(url)?.[1] ?? '');
  const app: App = new Hono({
    router: new CallsRemembered(),
    // Repeated and trailing slashes lead to the same own route.
    getPath: (request) =>
      isOwn(request.url) ? getPath(request).replace(/\/+(?=\/|$)/g, '') || '/' : CALLED,
  });
  addOwnRoutes(app, isOwn);
  for (const { path } of app.routes) ownSegments.add(path.split('/')[1] ?? '');
  // No middleware surrounds a call (decision 22).
  app.all('*', (context) => call(context.req.raw, context.env, context.executionCtx));
  app.onError((error, context) => internalError(error, askedOf(context)));
  return {
    fetch(request, env, ctx) {
      const { method, url } = request;
      const refused = refusedAtDoor(method, { request, env, ctx }, isOwn);
      if (refused !== null) return refused;
      // Hono removes the body of a response to HEAD, and with it the length that callers ask for.
      if (method === 'HEAD' && !isOwn(url)) return call(request, env, ctx);
      return app.fetch(request, env, ctx);
    },
  };
}

/** The table of routes. It searches the route of calls once for each method, because all calls have the same path. */
class CallsRemembered<Handler> implements Router<Handler> {
  readonly name = 'CallsRemembered';
  readonly #table = new TrieRouter<Handler>();
  readonly #ofCalls = new Map<string, Result<Handler>>();

  add(method: string, path: string, handler: Handler): void {
    this.#table.add(method, path, handler);
  }

  match(method: string, path: string): Result<Handler> {
    const known = path === CALLED ? this.#ofCalls.get(method) : undefined;
    if (known !== undefined) return known;
    const found = this.#table.match(method, path);
    if (path === CALLED) this.#ofCalls.set(method, found);
    return found;
  }
}

/** Adds Headgate's own routes, matched from top to bottom. */
function addOwnRoutes(app: App, isOwn: (url: string) => boolean): void {
  app.get('/', home);
  app.get('/favicon.ico', favicon);
  app.get('/healthz', (context) => context.json({ ok: true, calls_in_flight: callsInFlight() }));
  app.get(`${MALFORMED_PATH}*`, (context) => malformed(askedOf(context), isOwn));
  app.get(DEPARTED_PATH, ({ req }) => {
    departures.report(req.raw);
    return new Response(null, { status: 204 });
  });
  app.get(STOPPING_PATH, stopping);
  for (const path of ['/metrics', '/status', '/admin/api/*']) app.use(path, requirePlaces);
  app.use('/status', statusCors);
  app.use('/admin/api/*', adminCors);
  app.use('/admin/api/*', refuseForeignPages);
  app.use('/webhooks/*', refuseForeignPages);
  app.get('/metrics', metrics);
  app.get('/status', status);
  for (const path of ['/leases', '/leases/*', '/tickets/*']) {
    app.all(path, ({ req, env, executionCtx }) => leases(req.raw, env, executionCtx));
  }
  app.post('/webhooks/:upstream', webhook);
  app.route('/admin/api', createAdminRoutes());
  app.route('/admin', createDashboardRoutes());
  app.all('/', (context) => {
    const { dialect, reply } = rootIsNoRoute(context.req.raw, READING_METHODS);
    return rejectedResponse(dialect, rejected(reply), askedOf(context));
  });
  for (const path of ['/favicon.ico', '/healthz', '/metrics', '/status', '/admin/*']) {
    app.all(path, (context) => wrongMethod(context, READING_METHODS));
  }
  app.all('/webhooks/:upstream', (context) => wrongMethod(context, ['POST']));
}

/** Answers a call, or any URL that no other route serves. */
async function call(request: Request, env: Env, ctx: Background): Promise<Response> {
  try {
    return await proxy(request, env, ctx);
  } catch (error) {
    return internalError(error, { request, env, ctx });
  }
}

/** Rejects requests that need the directory if a variable sets an invalid location. */
const requirePlaces: MiddlewareHandler<{ Bindings: Env }> = async ({ env }, next) => {
  const wrong = wrongPlace(env);
  if (wrong !== null) return problemResponse(new ProblemError(503, wrong));
  return next();
};

const refuseForeignPages: MiddlewareHandler<{ Bindings: Env }> = async (context, next) => {
  const { env, executionCtx, req } = context;
  const isOfPage = req.header('origin') !== undefined;
  const table = isOfPage ? await isolateConfig.forPool(env, executionCtx) : null;
  const refused = foreignChange(req.raw, table?.snapshot.config.cors_origins ?? []);
  return refused === null ? next() : problemResponse(new ProblemError(403, refused.message));
};

/** Responds to a method that one of Headgate's own routes does not serve. */
function wrongMethod(context: RouteContext, allow: readonly string[]): Response {
  const message = `This route does not support this method. Use ${allow.join(' or ')}.`;
  const reply = { reason: 'method_unknown', message, allow } as const;
  return rejectedResponse('opaque', rejected(reply), askedOf(context));
}

/** Responds to a bug in Headgate. The error's message may contain anything, so only its name and stack are logged. */
function internalError(error: unknown, asked: RefusedRequest): Response {
  const { name, stack } = error instanceof Error ? error : new Error('not an error');
  logEvent('internal_error', { name, stack: stackOf(stack ?? '') });
  const message =
    'Headgate failed to handle the call because of an internal error. Retry it. The log line `internal_error` has the details.';
  return rejectedResponse('openai', rejected({ reason: 'internal', message }), asked);
}

type RouteContext = Context<{ Bindings: Env }>;

/** Returns what the count of rejections needs of a request. */
function askedOf({ req, env, executionCtx }: RouteContext) {
  return { request: req.raw, env, ctx: executionCtx };
}

/** Returns the frames of a stack, without the message. */
function stackOf(stack: string): string {
  return stack
    .split('\n')
    .filter((line) => line.trimStart().startsWith('at '))
    .slice(0, 8)
    .join('\n');
}

/**
 * Closes WebSockets, and makes all pools in use flush pending writes, because the process is about to end. Only `serve`
 * can request it.
 */
export async function stopping({ env, req }: Context<{ Bindings: Env }>): Promise<Response> {
  const { isStopping, mayFinish }: Partial<Stopping> = { ...(req.raw.cf as object | undefined) };
  if (isStopping !== true) return new Response(null, { status: 404 });
  if (mayFinish === true) {
    openSockets.stopAtRest();
    return new Response(null, { status: 204 });
  }
  // They would otherwise break without a reason.
  openSockets.stop();
  const [directory, known] = await Promise.all([readDirectory(env), directoryOf(env).presence()]);
  const inUse = known.filter(({ said }) => said === null);
  await askPools(env, directory.config, inUse, (pool) => pool.flush());
  return new Response(null, { status: 204 });
}

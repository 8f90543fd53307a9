// Entry point: URLs of Headgate's own routes go to the route table below, and all others are calls.

import { Hono, type Context, type MiddlewareHandler } from 'hono';
import { getPath } from 'hono/utils/url';
import type { Env } from '../env.ts';
import { READING_METHODS } from '../contract/methods.ts';
import { DEPARTED_PATH, STOPPING_PATH } from '../contract/rpc/forwarded.ts';
import { isolateConfig } from '../config/isolate-config.ts';
import { foreignChange } from '../runtime/cross-site.ts';
import { logEvent } from '../runtime/log.ts';
import { wrongPlace } from '../runtime/locations.ts';
import { errorAt, isOwnUrl, malformed, refusedAtDoor } from './door.ts';
import { MALFORMED_PATH } from './malformed.ts';
import type { RefusedRequest } from '../call/refusals/note-refusal.ts';
import { rejectedResponse } from '../call/respond.ts';
import { rejected } from '../call/result.ts';
import { createAdminRoutes } from '../admin/admin-routes.ts';
import { ProblemError, problemResponse } from '../admin/problem.ts';
import { rootIsNoRoute } from '../call/base-url.ts';
import { callsInFlight } from '../call/calls-in-flight.ts';
import { createDashboardRoutes, favicon } from './dashboard/dashboard-routes.ts';
import { home } from './home.ts';
import { departures } from '../call/isolate.ts';
import { leases } from '../call/leases/lease-routes.ts';
import { adminCors, statusCors } from './own-cors.ts';
import { metrics } from './metrics/metrics-route.ts';
import { proxy } from '../call/handle.ts';
import { stopping } from './stopping.ts';
import { status } from './status/status-route.ts';
import { webhook } from './webhooks/webhook-route.ts';

export function createApp(): ExportedHandler<Env> {
  const routes = createRoutes();
  return {
    async fetch(request, env, ctx) {
      const { method, url } = request;
      const refused = refusedAtDoor(method, { request, env, ctx });
      if (refused !== null) return refused;
      if (isOwnUrl(url)) return routes.fetch(request, env, ctx);
      // Calls bypass the route table, so that the framework adds no overhead to them (decision 22).
      try {
        return await proxy(request, env, ctx);
      } catch (error) {
        return internalError(error, { request, env, ctx });
      }
    },
  };
}

/** Creates Headgate's own routes, matched from top to bottom. */
function createRoutes(): Hono<{ Bindings: Env }> {
  // Repeated and trailing slashes lead to the same route.
  const app = new Hono<{ Bindings: Env }>({
    getPath: (request) => getPath(request).replace(/\/+(?=\/|$)/g, '') || '/',
  });
  app.get('/', home);
  app.get('/favicon.ico', favicon);
  app.get('/healthz', (context) => context.json({ ok: true, calls_in_flight: callsInFlight() }));
  app.get(`${MALFORMED_PATH}*`, (context) => malformed(askedOf(context)));
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
  app.all('*', (context) => proxy(context.req.raw, context.env, context.executionCtx));
  app.onError((error, context) => internalError(error, askedOf(context)));
  return app;
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
  return errorAt(context.req.url, reply, askedOf(context));
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

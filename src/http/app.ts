import { Hono } from 'hono';
import type { Env } from '../contract/env.ts';
import { logEvent } from '../contract/log.ts';
import { refusalResponse } from '../contract/wire-error.ts';
import { createAdminRoutes } from './admin/admin-routes.ts';
import { callsInFlight } from './calls-in-flight.ts';
import { home } from './home.ts';
import { proxy } from './proxy-route.ts';

/** The Worker's routes, top to bottom. */
export function createApp(): Hono<{ Bindings: Env }> {
  const app = new Hono<{ Bindings: Env }>();
  app.get('/', home);
  app.get('/healthz', (context) => context.json({ ok: true, calls_in_flight: callsInFlight() }));
  app.route('/admin/api', createAdminRoutes());
  app.all('*', (context) => proxy(context.req.raw, context.env, context.executionCtx));
  app.onError((error) => {
    // A bug of ours, not an expected outcome. Its message may hold anything, so only its kind is told.
    logEvent('internal_error', { name: error.name, stack: stackOf(error) });
    const message = 'Headgate failed to handle the call.';
    return refusalResponse('openai', { reason: 'internal', message });
  });
  return app;
}

/** Where it happened, without the message. */
function stackOf(error: Error): string {
  return (error.stack ?? '')
    .split('\n')
    .filter((line) => line.trimStart().startsWith('at '))
    .slice(0, 8)
    .join('\n');
}

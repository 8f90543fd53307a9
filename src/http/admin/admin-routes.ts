import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { Env } from '../../contract/env.ts';
import { requireAdminToken } from './auth.ts';
import { addConfigRoutes } from './config-routes.ts';
import { addDecisionRoutes } from './decision-routes.ts';
import { addGroupRoutes } from './group-routes.ts';
import { addHistoryRoutes } from './history-routes.ts';
import { addLeaseRoutes } from './lease-routes.ts';
import { ProblemError, problemResponse } from './problem.ts';
import { addStatusRoutes } from './status-routes.ts';
import { addWaiterRoutes } from './waiter-routes.ts';

/** Largest body of a request. */
const BODY_BYTES_MAX = 1_048_576;

/** The methods of every route, for the answer to any other method. */
const METHODS: Record<string, string> = {
  '/groups': 'GET',
  '/groups/:name': 'GET, PUT, PATCH, DELETE',
  '/groups/:name/pause': 'POST',
  '/groups/:name/drain': 'POST',
  '/groups/:name/resume': 'POST',
  '/groups/:name/status': 'GET',
  '/groups/:name/history': 'GET',
  '/groups/:name/decisions': 'GET',
  '/groups/:name/warnings': 'GET',
  '/groups/:name/leases': 'GET',
  '/groups/:name/leases/:id': 'DELETE',
  '/groups/:name/waiters': 'GET',
  '/groups/:name/waiters/:ticket': 'DELETE',
  '/groups/:name/waiters/:ticket/promote': 'POST',
  '/status': 'GET',
  '/config': 'GET, PUT',
  '/fingerprint': 'POST',
  '/audit': 'GET',
};

/** The admin API, to be mounted at `/admin/api`. Every answer that is not a 2xx is a problem (RFC 9457). */
export function createAdminRoutes(): Hono<{ Bindings: Env }> {
  const app = new Hono<{ Bindings: Env }>();
  app.onError((error) => problemResponse(error));
  app.use('*', requireAdminToken);
  app.use(
    '*',
    bodyLimit({
      maxSize: BODY_BYTES_MAX,
      onError: () => {
        throw new ProblemError(413, `A body may have at most ${BODY_BYTES_MAX} bytes.`);
      },
    }),
  );
  addGroupRoutes(app);
  addLeaseRoutes(app);
  addWaiterRoutes(app);
  addStatusRoutes(app);
  addHistoryRoutes(app);
  addDecisionRoutes(app);
  addConfigRoutes(app);
  for (const [path, methods] of Object.entries(METHODS)) {
    app.all(path, () => {
      throw new ProblemError(405, `Allowed here: ${methods}.`, { headers: { allow: methods } });
    });
  }
  app.all('*', (context) => {
    throw new ProblemError(404, `There is no admin route ${context.req.path}.`);
  });
  return app;
}

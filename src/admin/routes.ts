import { Hono, type MiddlewareHandler } from 'hono';
import { BODY_BROKEN, readOwnBody } from '../upstream/body/bytes.ts';
import { ACCESS_ROUTES } from './resources/access.ts';
import { BUDGET_ROUTES } from './resources/budgets.ts';
import { BULK_ROUTES } from './resources/bulk.ts';
import { CALL_ROUTES } from './resources/calls.ts';
import { CONFIG_ROUTES } from './resources/config.ts';
import { COST_ROUTES } from './resources/costs.ts';
import { DECISION_ROUTES } from './resources/decisions.ts';
import { DOCS_ROUTES } from './resources/docs.ts';
import { EVENT_ROUTES } from './resources/events.ts';
import { SWITCH_ROUTES } from './resources/group-switches.ts';
import { GROUP_ROUTES } from './resources/groups.ts';
import { HISTORY_ROUTES } from './resources/history.ts';
import { KEY_ROUTES } from './resources/keys.ts';
import { LEASE_ROUTES } from './resources/leases.ts';
import { PREVIEW_ROUTES } from './resources/previews.ts';
import { REFUSAL_ROUTES } from './resources/refusals.ts';
import { STATUS_ROUTES } from './resources/status.ts';
import { TEAM_ROUTES } from './resources/teams.ts';
import { TESTER_ROUTES } from './resources/tester.ts';
import { UPSTREAM_ROUTES } from './resources/upstreams.ts';
import { VERSION_ROUTES } from './resources/versions.ts';
import { WEBHOOK_ROUTES } from './resources/webhook.ts';
import { serveRoutes, type AdminRouteTable } from './route.ts';
import { ProblemError, problemResponse, type AdminApp } from './context.ts';

/** All routes of the admin API, and the application that serves them. */

/** All routes of the admin API by operation id, in the order of the OpenAPI document. */
export const ADMIN_ROUTES = {
  ...GROUP_ROUTES,
  ...SWITCH_ROUTES,
  ...LEASE_ROUTES,
  ...BUDGET_ROUTES,
  ...BULK_ROUTES,
  ...STATUS_ROUTES,
  ...HISTORY_ROUTES,
  ...EVENT_ROUTES,
  ...DECISION_ROUTES,
  ...CALL_ROUTES,
  ...REFUSAL_ROUTES,
  ...PREVIEW_ROUTES,
  ...KEY_ROUTES,
  ...TEAM_ROUTES,
  ...UPSTREAM_ROUTES,
  ...COST_ROUTES,
  ...CONFIG_ROUTES,
  ...TESTER_ROUTES,
  ...WEBHOOK_ROUTES,
  ...VERSION_ROUTES,
  ...ACCESS_ROUTES,
  ...DOCS_ROUTES,
} satisfies AdminRouteTable;

export type AdminRoutes = typeof ADMIN_ROUTES;

const BODY_BYTES_MAX = 1_048_576;

/** Maximum bytes of the body of a sign-in. It is smaller, because the body is read before authentication. */
const SIGN_IN_BYTES_MAX = 8_192;

/** Creates the admin API, mounted at `/admin/api`. Every response that is not a 2xx is a problem (RFC 9457). */
export function createAdminRoutes(): AdminApp {
  const app: AdminApp = new Hono();
  app.onError((error) => problemResponse(error));
  app.use('*', async (context, next) => {
    await next();
    // Responses contain keys that are shown only once, and depend on the actor.
    context.res.headers.set('cache-control', 'no-store');
    context.res.headers.set('x-content-type-options', 'nosniff');
  });
  app.use('/session', atMost(SIGN_IN_BYTES_MAX));
  app.use('*', atMost(BODY_BYTES_MAX));
  serveRoutes(app, ADMIN_ROUTES);
  return app;
}

/** Limits the length of bodies. A body of unannounced length is read here. */
function atMost(bytes: number): MiddlewareHandler {
  const tooLong = (): ProblemError =>
    new ProblemError(413, `The body is too large. The maximum is ${bytes} bytes.`);
  return async ({ req }, next) => {
    const { raw } = req;
    const announced = req.header('content-length');
    if (announced !== undefined && req.header('transfer-encoding') === undefined) {
      if (Number(announced) > bytes) throw tooLong();
    } else if (raw.body !== null) {
      const read = await readOwnBody(raw, bytes);
      if (read.kind === 'broken') throw new ProblemError(400, BODY_BROKEN);
      if (read.kind === 'too long') throw tooLong();
      req.raw = new Request(raw, { method: raw.method, body: read.bytes });
    }
    return next();
  };
}

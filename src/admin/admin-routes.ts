// How to write an admin route: 1. contract/admin/addresses.ts has its method and path. A description in a *-routes.ts
// next to it has its role, params,    query, body and responses. The OpenAPI document, the client and the types of the
// handler derive from these. 2. `serve(app, 'name', handler)` in the file of its resource, here. The role is checked
// first, then each part of the    request. The handler gets only valid values, and returns `{ status, body, version? }`
// or throws a `ProblemError`. 3. Changes of the configuration go through `changeConfig` (change.ts), and queries of
// pools through `askPools`    (overview/pools.ts). `note` (change.ts) logs actions that do not change the configuration
// in the audit log.

import { Hono, type MiddlewareHandler } from 'hono';
import { BODY_BROKEN, readOwnBody } from '../upstream/body/bounded-body.ts';
import { addAccessRoutes } from './access-routes.ts';
import { addAttentionRoutes } from './attention-routes.ts';
import { addConfigRoutes } from './config-routes.ts';
import { addBudgetRoutes } from './budget-routes.ts';
import { addBulkRoutes } from './bulk-routes.ts';
import type { AdminApp } from './context.ts';
import { addCallRoutes } from './call-routes.ts';
import { addCostRoutes } from './cost-routes.ts';
import { addDecisionRoutes } from './decision-routes.ts';
import { addDocsRoutes } from './docs-routes.ts';
import { addEventRoutes } from './event-routes.ts';
import { addGroupRoutes } from './group-routes.ts';
import { addHistoryRoutes } from './history-routes.ts';
import { addIsolateRoutes } from './isolate-routes.ts';
import { addKeyRoutes } from './key-routes.ts';
import { addLeaseRoutes } from './lease-routes.ts';
import { addMemberRoutes } from './member-routes.ts';
import { addPreviewRoutes } from './preview-routes.ts';
import { ProblemError, problemResponse } from './problem.ts';
import { addRefusalRoutes } from './refusal-routes.ts';
import { addRelearnRoutes } from './relearn-routes.ts';
import { serveTheRest } from './serve.ts';
import { addStatusRoutes } from './status-routes.ts';
import { addSwitchRoutes } from './switch-routes.ts';
import { addTeamRoutes } from './team-routes.ts';
import { addTesterRoutes } from './tester-routes.ts';
import { addUpstreamRoutes } from './upstream-routes.ts';
import { addVersionRoutes } from './version-routes.ts';
import { addWaiterRoutes } from './waiter-routes.ts';
import { addWebhookRoutes } from './webhook-routes.ts';

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
  addDocsRoutes(app);
  addAccessRoutes(app);
  addGroupRoutes(app);
  addLeaseRoutes(app);
  addWaiterRoutes(app);
  addWebhookRoutes(app);
  addRelearnRoutes(app);
  addMemberRoutes(app);
  addBudgetRoutes(app);
  addAttentionRoutes(app);
  addStatusRoutes(app);
  addBulkRoutes(app);
  addSwitchRoutes(app);
  addIsolateRoutes(app);
  addEventRoutes(app);
  addUpstreamRoutes(app);
  addKeyRoutes(app);
  addTeamRoutes(app);
  addCostRoutes(app);
  addHistoryRoutes(app);
  addDecisionRoutes(app);
  addCallRoutes(app);
  addRefusalRoutes(app);
  addConfigRoutes(app);
  addVersionRoutes(app);
  addTesterRoutes(app);
  addPreviewRoutes(app);
  serveTheRest(app);
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

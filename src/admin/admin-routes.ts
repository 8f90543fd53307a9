import { Hono, type MiddlewareHandler } from 'hono';
import { BODY_BROKEN, readOwnBody } from '../upstream/body/bytes.ts';
import type { AdminApp } from './context.ts';
import { ProblemError, problemResponse } from './problem.ts';
import { serveRoutes } from './route.ts';
import { ADMIN_ROUTES } from './routes.ts';

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

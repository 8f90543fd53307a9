import type { Context, MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { isolateConfig } from '../config/isolate-config.ts';
import type { Env } from '../env.ts';

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
  const allowed = cors({
    origin: (origin) => origin,
    allowMethods: ['GET', 'PUT', 'PATCH', 'POST', 'DELETE'],
    allowHeaders: [...allowHeaders],
    exposeHeaders: EXPOSED,
    maxAge: PREFLIGHT_S,
  });
  return async (context, next) => ((await isConfigured(context)) ? allowed(context, next) : next());
}

async function isConfigured({ req, env, executionCtx }: Context<{ Bindings: Env }>) {
  const origin = req.header('origin');
  if (origin === undefined) return false;
  const table = await isolateConfig.forPool(env, executionCtx);
  return table?.snapshot.config.cors_origins.includes(origin) ?? false;
}

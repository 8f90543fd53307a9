import type { Context, MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { routingTable } from '../config/snapshots.ts';
import type { Env } from '../env.ts';

type Front = MiddlewareHandler<{ Bindings: Env }>;

/** How long a browser keeps the answer to a preflight, in seconds. */
const PREFLIGHT_S = 600;

/** Headers that scripts read of the admin API and the status. */
const EXPOSED = ['etag', 'retry-after', 'www-authenticate'];

/**
 * Headers by which scripts of other origins ask the admin API. The one that goes with its cookie is none of them: whoever
 * is signed in with a cookie is so on the pages of this host alone.
 */
const OF_ADMIN = ['authorization', 'content-type', 'if-match'];

/** Lets pages of the configured origins ask the admin API, with a token in `Authorization`. */
export const adminCors: Front = forConfigured(OF_ADMIN);

/** Lets them ask for the status. Keys come in as many headers as calls may bring them in, so it takes what is asked for. */
export const statusCors: Front = forConfigured([]);

/**
 * Makes a step before routes that tells browsers of configured origins, and nobody else, that they may read the answers. No
 * credentials: a browser sends neither cookies nor what Cloudflare Access keeps for it.
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
  const table = await routingTable(env, executionCtx);
  return table?.snapshot.config.cors_origins.includes(origin) ?? false;
}

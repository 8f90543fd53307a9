import { Hono, type Context } from 'hono';
import { secureHeaders } from 'hono/secure-headers';
import type { Env } from '../../env.ts';

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

const NOT_BUILT =
  'The files of the dashboard are missing. Build them with `npm run build:dashboard`, then restart or redeploy.\n';

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

/**
 * Source of the page's scripts and styles: only the built files. Responses of upstreams have the same origin, so
 * `'self'` would allow them to run in the page. A policy cannot name an IPv6 address, so the whole origin is allowed
 * there.
 */
function builtFiles({ req }: Context): string {
  const { host } = new URL(req.url);
  return /^[\w.-]+(?::\d+)?$/.test(host) ? `${host}/admin/assets/` : "'self'";
}

/** Redirects browsers to the icon of the page. They request `/favicon.ico` on any page. */
export async function favicon(context: DashboardContext): Promise<Response> {
  const html = await (await read(context, '/index.html'))?.text();
  const [, icon] = /href="(\/admin\/assets\/icon-[\w.-]+\.svg)"/.exec(html ?? '') ?? [];
  return icon === undefined ? context.body(null, 204) : context.redirect(icon);
}

async function builtFile(context: DashboardContext): Promise<Response> {
  const [, path = null, end = ''] = BUILT_FILE.exec(context.req.path) ?? [];
  const file = path === null ? null : await read(context, path);
  if (file === null) return context.text('File not found.\n', 404);
  return answer(file, TYPES[end] ?? 'application/octet-stream', FOR_GOOD);
}

async function page(context: DashboardContext): Promise<Response> {
  const file = await read(context, '/index.html');
  if (file === null) return context.text(NOT_BUILT, 503);
  return answer(file, TYPES['html'] ?? '', 'no-cache');
}

/** Reads a file of the build, or returns null if there is none. */
async function read({ env, req }: DashboardContext, path: string): Promise<Response | null> {
  const known = req.header('if-none-match');
  const headers = known === undefined ? {} : { 'if-none-match': known };
  const file = await env.ASSETS?.fetch(`https://dashboard${path}`, { headers });
  if (file?.status === 200 || file?.status === 304) return file;
  await file?.body?.cancel();
  return null;
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

import { Hono, type Context } from 'hono';
import { secureHeaders } from 'hono/secure-headers';
import type { Env } from '../../env.ts';
import { builtFilesAt, NOT_BUILT, readAsset } from '../../runtime/deployment.ts';

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

function builtFiles({ req }: Context): string {
  return builtFilesAt(req.url);
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

function read({ env, req }: DashboardContext, path: string): Promise<Response | null> {
  return readAsset(env, path, req.header('if-none-match'));
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

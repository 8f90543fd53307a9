import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type * as z from 'zod';
import type { AdminRoute, RouteAnswer, CheckedPart } from '../contract/admin/route.ts';
import type { RouteName } from '../contract/admin/addresses.ts';
import { ADMIN_ROUTES, type AdminRoutes } from '../contract/admin/routes.ts';
import { explainIssues } from '../config/explain-issues.ts';
import type { FieldError } from '../config/field-error.ts';
import { ConfigSyntaxError, parseConfigText } from '../config/parse-text.ts';
import { unsupportedBody } from '../runtime/cross-site.ts';
import { BODY_BROKEN, readOwnBody } from '../upstream/body/bounded-body.ts';
import { requireRole } from './access/actor.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { ProblemError } from './problem.ts';

interface CheckedRequest<Name extends RouteName> {
  readonly context: AdminContext;
  readonly params: CheckedPart<AdminRoutes[Name], 'params'>;
  readonly query: CheckedPart<AdminRoutes[Name], 'query'>;
  readonly body: CheckedPart<AdminRoutes[Name], 'body'>;
}

type MaybePromise<T> = T | Promise<T>;

/** Parts of a response in addition to its body. The version is sent as `ETag`. */
interface Extras {
  readonly version?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Handlers by route. A mapped type keeps the literal type of each status. */
type Handlers = {
  [Name in RouteName]: (
    asked: CheckedRequest<Name>,
  ) => MaybePromise<(RouteAnswer<AdminRoutes[Name]> & Extras) | Response>;
};

/**
 * Serves a route as described: checks the role, and validates each part of the request before the handler gets it. The
 * handler returns a described response, or throws a problem.
 */
export function serve<Name extends RouteName>(
  app: AdminApp,
  name: Name,
  handler: Handlers[Name],
): void {
  const route: AdminRoute = ADMIN_ROUTES[name];
  app.on(route.method, honoPath(route.path), async (context) => {
    if (route.role !== 'open') context.set('who', await requireRole(context, route.role));
    const unsupported = await unsupportedBody(context.req.raw, true);
    if (unsupported !== null) throw new ProblemError(415, unsupported.message);
    const { params, query } = route;
    const asked = {
      context,
      params: params && check(params, context.req.param()),
      query: query && check(query, context.req.query()),
      body: await bodyOf(context, route),
    };
    // The cast is sound because the parts were parsed by the schemas from which the types derive.
    const reply = await handler(asked as CheckedRequest<Name>);
    if (reply instanceof Response) return reply;
    const { status, body, version, headers = {} } = reply;
    const isText = route.answers[status] === 'text';
    // A new `Response` would lose the cookies that were set on the context.
    return context.body(isText ? String(body) : JSON.stringify(body), {
      status: status as ContentfulStatusCode,
      headers: {
        'content-type': isText ? `${route.contentType}; charset=utf-8` : 'application/json',
        ...(version === undefined ? {} : { etag: etag(version) }),
        ...headers,
      },
    });
  });
}

/** Returns a response of a `PUT`: 201 if it created something, otherwise 200. */
export function madeOr<Rest extends object>(isNew: boolean, rest: Rest) {
  return isNew ? { status: 201 as const, ...rest } : { status: 200 as const, ...rest };
}

/** Responds with 405 to other methods of described paths, and with 404 to all other paths. */
export function serveTheRest(app: AdminApp): void {
  const all = Object.values<AdminRoute>(ADMIN_ROUTES);
  for (const [path, ofPath] of Map.groupBy(all, (route) => route.path)) {
    const allowed = ofPath.map(({ method }) => method).join(', ');
    app.all(honoPath(path), async (context) => {
      await requireRole(context, 'viewer');
      throw new ProblemError(405, `This route does not support this method. Use ${allowed}.`, {
        headers: { allow: allowed },
      });
    });
  }
  app.all('*', async (context) => {
    await requireRole(context, 'viewer');
    throw new ProblemError(
      404,
      `There is no admin route \`${context.req.path}\`. \`GET /admin/api/docs\` lists all routes.`,
    );
  });
}

/** Validates a part of a request. Throws a problem with all errors. */
export function check<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw invalid(explainIssues(parsed.error, schema, value));
  return parsed.data;
}

const ERRORS_MAX = 50;

export function invalid(errors: readonly FieldError[]): ProblemError {
  const [first] = errors;
  const rest = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  const detail = first === undefined ? '' : `${first.path}: ${first.message}${rest}`;
  const more = Math.max(0, errors.length - ERRORS_MAX);
  return new ProblemError(422, detail.replace(/^: /, ''), {
    errors: errors.slice(0, ERRORS_MAX),
    more,
  });
}

export function etag(version: number): string {
  return `"${version}"`;
}

/** Reads the body as JSON or YAML. */
export async function readDocument(context: AdminContext): Promise<unknown> {
  // Not `text()`, because the runtime then logs a warning for types that it does not treat as text.
  const read = await readOwnBody(context.req.raw, Infinity);
  if (read.kind !== 'read') throw new ProblemError(400, BODY_BROKEN);
  // Some clients send a content type even without a body.
  if (read.bytes.byteLength === 0) return null;
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(read.bytes);
    return parseConfigText(text, context.req.header('content-type') ?? null);
  } catch (error) {
    if (error instanceof ConfigSyntaxError) throw new ProblemError(400, error.message);
    if (error instanceof TypeError) {
      throw new ProblemError(400, 'The body is not valid UTF-8 text.');
    }
    throw error;
  }
}

async function bodyOf(context: AdminContext, route: AdminRoute): Promise<unknown> {
  if (route.body === undefined || route.readsBody === true) return undefined;
  const document = await readDocument(context);
  return check(route.body, route.isBodyOptional === true ? (document ?? {}) : document);
}

function honoPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

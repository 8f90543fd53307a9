// A route of the admin API is one entry of a resource in `resources`:
//
//   getThing: route('GET /things/{id}', { tag, summary, role, params, answers }).servedBy(handler),
//
// The OpenAPI document, the client and the types of the handler derive from it. The role is checked first, then each
// part of the request. The handler gets only valid values, and returns `{ status, body, version? }` or throws a
// `ProblemError`. Changes of the configuration go through `changeConfig` (change.ts), and queries of pools through
// `askPools` (overview/pools.ts). `note` (change.ts) logs other actions in the audit log.

import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type * as z from 'zod';
import { explainIssues } from '../config/explain-issues.ts';
import type { FieldError } from '../config/field-error.ts';
import { ConfigSyntaxError, parseConfigText } from '../config/parse-text.ts';
import type { AdminRole } from '../contract/config/keys.ts';
import type { Frozen } from '../contract/shared-shapes.ts';
import { unsupportedBody } from '../runtime/origin.ts';
import { BODY_BROKEN, readOwnBody } from '../upstream/body/bytes.ts';
import { requireRole } from './access.ts';
import { ProblemError, type AdminApp, type AdminContext } from './context.ts';

/** Method, and path below `/admin/api`, such as `GET /groups/{name}`. */
type RouteAddress = `${'GET' | 'PUT' | 'PATCH' | 'POST' | 'DELETE'} /${string}`;

/** The parts of the requests of a route, its responses, and the minimum role. */
interface RouteDescription {
  readonly tag: 'groups' | 'configuration' | 'upstreams' | 'keys' | 'status' | 'access' | 'about';
  readonly summary: string;
  readonly description?: string;
  /** Minimum role. `open` means no authentication. */
  readonly role: AdminRole | 'open';
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  readonly isBodyOptional?: true;
  /** The handler parses and validates the body, against this schema and more. */
  readonly readsBody?: true;
  /** Successful responses by status. */
  readonly answers: Readonly<Record<number, z.ZodType | 'text'>>;
  readonly contentType?: string;
  /** The response has the version of the configuration as `ETag`. */
  readonly hasEtag?: true;
  /** The route changes the configuration, so it accepts `If-Match`. */
  readonly takesIfMatch?: true;
  /** Problems of this route, in addition to those of all routes. */
  readonly problems?: readonly number[];
}

export interface AdminRoute extends RouteDescription {
  readonly address: RouteAddress;
  readonly method: string;
  /** Below `/admin/api`, such as `/groups/{name}`. */
  readonly path: string;
  readonly serve: (context: AdminContext) => Promise<Response>;
}

/** Routes by operation id. */
export type AdminRouteTable = Readonly<Record<string, AdminRoute>>;

type RequestPart = 'params' | 'query' | 'body';

type SchemaIn<Route, Part extends RequestPart> =
  Route extends Readonly<Record<Part, infer Schema extends z.ZodType>> ? Schema : never;

/** A part of a request after its validation, with defaults filled in. */
type CheckedPart<Route, Part extends RequestPart> = [SchemaIn<Route, Part>] extends [never]
  ? undefined
  : z.output<SchemaIn<Route, Part>>;

/** A part of a request as it is sent. */
export type SentPart<Route, Part extends RequestPart> = z.input<SchemaIn<Route, Part>>;

export type RouteAnswer<Route extends Pick<RouteDescription, 'answers'>> = {
  [Status in keyof Route['answers'] & number]: {
    readonly status: Status;
    readonly body: Route['answers'][Status] extends z.ZodType
      ? Frozen<z.output<Route['answers'][Status]>>
      : string;
  };
}[keyof Route['answers'] & number];

interface CheckedRequest<Route> {
  readonly context: AdminContext;
  readonly params: CheckedPart<Route, 'params'>;
  readonly query: CheckedPart<Route, 'query'>;
  readonly body: CheckedPart<Route, 'body'>;
}

/** Parts of a response in addition to its body. The version is sent as `ETag`. */
interface ReplyExtras {
  readonly version?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

type MaybePromise<T> = T | Promise<T>;

/** Describes a route. `servedBy` adds its handler, which has the types of the description. */
export function route<const Address extends RouteAddress, const Route extends RouteDescription>(
  address: Address,
  description: Route,
) {
  const [method = '', path = ''] = address.split(' ');
  return {
    servedBy(
      handler: (
        request: CheckedRequest<Route>,
      ) => MaybePromise<(RouteAnswer<Route> & ReplyExtras) | Response>,
    ) {
      const serve: AdminRoute['serve'] = async (context) => {
        const checked = { context, ...(await checkedParts(context, description)) };
        // The cast is sound because the parts were parsed by the schemas from which the types derive.
        const reply = await handler(checked as CheckedRequest<Route>);
        return reply instanceof Response ? reply : written(context, description, reply);
      };
      return { ...description, address, method, path, serve };
    },
  };
}

/** Checks the role first, then each part of the request. */
async function checkedParts(context: AdminContext, description: RouteDescription) {
  const { role, params, query } = description;
  if (role !== 'open') context.set('who', await requireRole(context, role));
  const unsupported = await unsupportedBody(context.req.raw, true);
  if (unsupported !== null) throw new ProblemError(415, unsupported.message);
  return {
    params: params && check(params, context.req.param()),
    query: query && check(query, context.req.query()),
    body: await bodyOf(context, description),
  };
}

function written(
  context: AdminContext,
  { answers, contentType }: RouteDescription,
  {
    status,
    body,
    version,
    headers = {},
  }: ReplyExtras & { readonly status: number; readonly body: unknown },
): Response {
  const isText = answers[status] === 'text';
  // A new `Response` would lose the cookies that were set on the context.
  return context.body(isText ? String(body) : JSON.stringify(body), {
    status: status as ContentfulStatusCode,
    headers: {
      'content-type': isText ? `${contentType}; charset=utf-8` : 'application/json',
      ...(version === undefined ? {} : { etag: etag(version) }),
      ...headers,
    },
  });
}

/**
 * Serves all routes. Responds with 405 to other methods of their paths, and with 404 to all other paths.
 */
export function serveRoutes(app: AdminApp, table: AdminRouteTable): void {
  const all = Object.values(table);
  for (const { method, path, serve } of all) {
    app.on(method, honoPath(path), serve);
  }
  for (const [path, ofPath] of Map.groupBy(all, (each) => each.path)) {
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

/** Returns a response of a `PUT`: 201 if it created something, otherwise 200. */
export function madeOr<Rest extends object>(isNew: boolean, rest: Rest) {
  return isNew ? { status: 201 as const, ...rest } : { status: 200 as const, ...rest };
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

async function bodyOf(
  context: AdminContext,
  { body, readsBody, isBodyOptional }: RouteDescription,
): Promise<unknown> {
  if (body === undefined || readsBody === true) return undefined;
  const document = await readDocument(context);
  return check(body, isBodyOptional === true ? (document ?? {}) : document);
}

function honoPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

import type * as z from 'zod';
import { ROUTE_ADDRESSES, type RouteName } from './addresses.ts';
import type { problemSchema } from './answer-schemas.ts';
import type { RouteAnswer, SentPart } from './route.ts';
import type { AdminRoutes } from './routes.ts';

type Takes<Name extends RouteName, Part extends string> =
  AdminRoutes[Name] extends Readonly<Record<Part, z.ZodType>> ? true : false;

/** Required parts of a request: the path parameters, and the body unless it is optional. */
type Needed<Name extends RouteName> =
  | (Takes<Name, 'params'> extends true ? 'params' : never)
  | (Takes<Name, 'body'> extends true
      ? AdminRoutes[Name] extends { readonly isBodyOptional: true }
        ? never
        : 'body'
      : never);

interface RequestParts<Name extends RouteName> {
  readonly params: SentPart<AdminRoutes[Name], 'params'>;
  readonly query: SentPart<AdminRoutes[Name], 'query'>;
  readonly body: SentPart<AdminRoutes[Name], 'body'>;
  readonly ifMatch: string;
}

export type AdminRequest<Name extends RouteName> = Pick<RequestParts<Name>, Needed<Name>> &
  Partial<RequestParts<Name>>;

type AdminResult<Name extends RouteName> =
  | (RouteAnswer<AdminRoutes[Name]> & { readonly ok: true; readonly etag: string | null })
  | {
      readonly ok: false;
      readonly status: number;
      readonly problem: z.output<typeof problemSchema>;
      readonly etag: string | null;
    };

/** Calls one route. Request and response have the types of the route's description. */
export type AdminClient = <Name extends RouteName>(
  name: Name,
  ...request: [Needed<Name>] extends [never] ? [AdminRequest<Name>?] : [AdminRequest<Name>]
) => Promise<AdminResult<Name>>;

export interface AdminClientOptions {
  /** Address of the API, such as `https://headgate.example.com/admin/api`. */
  readonly baseUrl: string;
  /** Sent with every request: the token, or the headers that a request by cookie needs. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

export function createAdminClient(options: AdminClientOptions): AdminClient {
  const send = options.fetch ?? ((url, init) => fetch(url, init));
  return async (name, ...[request = {}]) => {
    const route = ROUTE_ADDRESSES[name];
    const { params, query, body, ifMatch } = request as Readonly<Record<string, unknown>>;
    const response = await send(options.baseUrl + pathOf(route.path, params) + searchOf(query), {
      method: route.method,
      headers: {
        ...options.headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(typeof ifMatch === 'string' ? { 'if-match': ifMatch } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const { status, headers } = response;
    const isJson = /^[^;]*[/+]json\s*(?:;|$)/i.test(headers.get('content-type') ?? '');
    const answer: unknown = isJson ? await response.json() : await response.text();
    const etag = headers.get('etag');
    // The casts are sound if the server keeps to its own description, which its tests check.
    return (
      response.ok
        ? { ok: true, status, body: answer, etag }
        : { ok: false, status, problem: answer, etag }
    ) as AdminResult<typeof name>;
  };
}

function pathOf(template: string, params: unknown): string {
  const values = new Map<string, unknown>(Object.entries(params ?? {}));
  return template.replace(/\{(\w+)\}/g, (_all, name: string) =>
    encodeURIComponent(String(values.get(name))),
  );
}

function searchOf(query: unknown): string {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(
    pairs.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  return search === '' ? '' : `?${search}`;
}

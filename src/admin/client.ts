// The only file of this room that the dashboard and the CLI load. It imports types alone, so that they load neither
// handlers nor schemas.

import type * as z from 'zod';
import type { problemSchema } from '../contract/shared-shapes.ts';
import type { RouteAnswer, SentPart } from './route.ts';
import type { AdminRoutes } from './routes.ts';

/** All routes by their addresses, such as `GET /groups/{name}`. */
type RouteAt = {
  readonly [Name in keyof AdminRoutes as AdminRoutes[Name]['address']]: AdminRoutes[Name];
};

/** Body of a successful response. */
export type AnswerAt<Address extends keyof RouteAt> = RouteAnswer<RouteAt[Address]>['body'];

type Takes<Address extends keyof RouteAt, Part extends string> =
  RouteAt[Address] extends Readonly<Record<Part, z.ZodType>> ? true : false;

/** Required parts of a request: the path parameters, and the body unless it is optional. */
type Needed<Address extends keyof RouteAt> =
  | (Takes<Address, 'params'> extends true ? 'params' : never)
  | (Takes<Address, 'body'> extends true
      ? RouteAt[Address] extends { readonly isBodyOptional: true }
        ? never
        : 'body'
      : never);

interface RequestParts<Address extends keyof RouteAt> {
  readonly params: SentPart<RouteAt[Address], 'params'>;
  readonly query: SentPart<RouteAt[Address], 'query'>;
  readonly body: SentPart<RouteAt[Address], 'body'>;
  readonly ifMatch: string;
}

export type AdminRequest<Address extends keyof RouteAt> = Pick<
  RequestParts<Address>,
  Needed<Address>
> &
  Partial<RequestParts<Address>>;

type AdminResult<Address extends keyof RouteAt> =
  | (RouteAnswer<RouteAt[Address]> & { readonly ok: true; readonly etag: string | null })
  | {
      readonly ok: false;
      readonly status: number;
      readonly problem: z.output<typeof problemSchema>;
      readonly etag: string | null;
    };

/** Calls one route. Request and response have the types of the route's description. */
export type AdminClient = <Address extends keyof RouteAt>(
  address: Address,
  ...request: [Needed<Address>] extends [never] ? [AdminRequest<Address>?] : [AdminRequest<Address>]
) => Promise<AdminResult<Address>>;

export interface AdminClientOptions {
  /** Address of the API, such as `https://headgate.example.com/admin/api`. */
  readonly baseUrl: string;
  /** Sent with every request: the token, or the headers that a request by cookie needs. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

export function createAdminClient(options: AdminClientOptions): AdminClient {
  const send = options.fetch ?? ((url, init) => fetch(url, init));
  return async (address, ...[request = {}]) => {
    const [method = 'GET', path = ''] = address.split(' ');
    const { params, query, body, ifMatch } = request as Readonly<Record<string, unknown>>;
    const response = await send(options.baseUrl + pathOf(path, params) + searchOf(query), {
      method,
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
    ) as AdminResult<typeof address>;
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

import type * as z from 'zod';
import type { AdminRole } from '../config/keys.ts';
import { ROUTE_ADDRESSES, type RouteName } from './addresses.ts';
import type { Frozen } from '../frozen.ts';

/** One route of the admin API: the parts of its requests, its responses, and the minimum role. */
export interface AdminRoute {
  readonly method: 'GET' | 'PUT' | 'PATCH' | 'POST' | 'DELETE';
  /** Below `/admin/api`, such as `/groups/{name}`. */
  readonly path: string;
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

/** A route without its address, which is in the table of addresses. */
type RouteDescription = Omit<AdminRoute, 'method' | 'path'>;

/** Adds the addresses to a table of routes, and keeps its exact types for handlers and the client. */
export function routes<const Table extends { readonly [Name in keyof Table]: RouteDescription }>(
  table: Table & { readonly [Name in Exclude<keyof Table, RouteName>]: never },
) {
  const all = Object.entries<RouteDescription>(table).map(([name, route]) => [
    name,
    // The cast is sound because the compiler accepts no other name in a table.
    { ...ROUTE_ADDRESSES[name as RouteName], ...route },
  ]);
  return Object.fromEntries(all) as {
    readonly [Name in keyof Table & RouteName]: Table[Name] & (typeof ROUTE_ADDRESSES)[Name];
  };
}

type SchemaIn<Route, Part extends 'params' | 'query' | 'body'> =
  Route extends Readonly<Record<Part, infer Schema extends z.ZodType>> ? Schema : never;

/** A part of a request after its validation, with defaults filled in. */
export type CheckedPart<Route, Part extends 'params' | 'query' | 'body'> = [
  SchemaIn<Route, Part>,
] extends [never]
  ? undefined
  : z.output<SchemaIn<Route, Part>>;

/** A part of a request as it is sent. */
export type SentPart<Route, Part extends 'params' | 'query' | 'body'> = z.input<
  SchemaIn<Route, Part>
>;

export type RouteAnswer<Route extends AdminRoute> = {
  [Status in keyof Route['answers'] & number]: {
    readonly status: Status;
    readonly body: Route['answers'][Status] extends z.ZodType
      ? Frozen<z.output<Route['answers'][Status]>>
      : string;
  };
}[keyof Route['answers'] & number];

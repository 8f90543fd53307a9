import type * as z from 'zod';
import type { AdminRole } from '../config/keys.ts';
import { ROUTE_ADDRESSES, type RouteName } from './addresses.ts';
import type { Frozen } from '../frozen.ts';

/** One route of the admin API: the parts of its requests, its answers, and its least role. */
export interface AdminRoute {
  readonly method: 'GET' | 'PUT' | 'PATCH' | 'POST' | 'DELETE';
  /** Below `/admin/api`, as in `/groups/{name}`. */
  readonly path: string;
  readonly tag: 'groups' | 'configuration' | 'upstreams' | 'keys' | 'status' | 'access' | 'about';
  readonly summary: string;
  readonly description?: string;
  /** The least role that may use it. `open`: everybody, without any token. */
  readonly role: AdminRole | 'open';
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** The body may be left out. */
  readonly isBodyOptional?: true;
  /** The handler reads and checks the body by itself, against this schema and more. */
  readonly readsBody?: true;
  /** Answers when all went well, by status. */
  readonly answers: Readonly<Record<number, z.ZodType | 'text'>>;
  /** The type of a `text` answer. */
  readonly contentType?: string;
  /** Its answer has the version of the configuration as `ETag`. */
  readonly hasEtag?: true;
  /** It changes the configuration, so it takes `If-Match`. */
  readonly takesIfMatch?: true;
  /** Problems that are its own, beside those that any route may answer with. */
  readonly problems?: readonly number[];
}

/** A route but for its address, which stands in the table of addresses. */
type RouteDescription = Omit<AdminRoute, 'method' | 'path'>;

/** Adds the addresses to a table of routes, and keeps its exact types: handlers and the client are typed by them. */
export function routes<const Table extends { readonly [Name in keyof Table]: RouteDescription }>(
  table: Table & { readonly [Name in Exclude<keyof Table, RouteName>]: never },
) {
  const all = Object.entries<RouteDescription>(table).map(([name, route]) => [
    name,
    // The cast is sound: the compiler lets no other name into a table.
    { ...ROUTE_ADDRESSES[name as RouteName], ...route },
  ]);
  return Object.fromEntries(all) as {
    readonly [Name in keyof Table & RouteName]: Table[Name] & (typeof ROUTE_ADDRESSES)[Name];
  };
}

type SchemaIn<Route, Part extends 'params' | 'query' | 'body'> =
  Route extends Readonly<Record<Part, infer Schema extends z.ZodType>> ? Schema : never;

/** A part of a request after its check, with defaults filled in. */
export type CheckedPart<Route, Part extends 'params' | 'query' | 'body'> = [
  SchemaIn<Route, Part>,
] extends [never]
  ? undefined
  : z.output<SchemaIn<Route, Part>>;

/** A part of a request as it is sent. */
export type SentPart<Route, Part extends 'params' | 'query' | 'body'> = z.input<
  SchemaIn<Route, Part>
>;

/** Everything that a route may answer when all went well. */
export type RouteAnswer<Route extends AdminRoute> = {
  [Status in keyof Route['answers'] & number]: {
    readonly status: Status;
    readonly body: Route['answers'][Status] extends z.ZodType
      ? Frozen<z.output<Route['answers'][Status]>>
      : string;
  };
}[keyof Route['answers'] & number];

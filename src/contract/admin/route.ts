import type * as z from 'zod';
import type { AdminRole } from '../config/config.ts';
import type { Frozen } from '../frozen.ts';

/** One route of the admin API: what it takes, what it answers, and who may use it. */
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
  /** What it answers when all went well, by status. */
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

/** Keeps the exact types of a table of routes, which handlers and the client are typed by. */
export function routes<const Table extends Readonly<Record<string, AdminRoute>>>(
  table: Table,
): Table {
  return table;
}

type SchemaIn<Route, Part extends 'params' | 'query' | 'body'> =
  Route extends Readonly<Record<Part, infer Schema extends z.ZodType>> ? Schema : never;

/** A part of a request after its check, with defaults filled in. */
export type Checked<Route, Part extends 'params' | 'query' | 'body'> = [
  SchemaIn<Route, Part>,
] extends [never]
  ? undefined
  : z.output<SchemaIn<Route, Part>>;

/** A part of a request as it is sent. */
export type Sent<Route, Part extends 'params' | 'query' | 'body'> = z.input<SchemaIn<Route, Part>>;

/** Everything that a route may answer when all went well. */
export type Answer<Route extends AdminRoute> = {
  [Status in keyof Route['answers'] & number]: {
    readonly status: Status;
    readonly body: Route['answers'][Status] extends z.ZodType
      ? Frozen<z.output<Route['answers'][Status]>>
      : string;
  };
}[keyof Route['answers'] & number];

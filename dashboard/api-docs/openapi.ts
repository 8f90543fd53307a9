import type {
  ComponentsObject,
  OpenAPIObject,
  OperationObject,
  ParameterObject,
  ResponseObject,
  SchemaObject,
  SecurityRequirementObject,
  ServerObject,
  TagObject,
} from 'openapi3-ts/oas31';
import * as z from 'zod';
import { adminKeyInfoSchema, sessionSchema } from '../../src/admin/resources/access.ts';
import { keySchema } from '../../src/admin/resources/keys.ts';
import { problemSchema, suggestionSchema } from '../../src/contract/shared-shapes.ts';
import { testedSchema } from '../../src/admin/resources/tester.ts';
import { upstreamDetailSchema, upstreamInfoSchema } from '../../src/admin/upstream-view.ts';
import { auditEntrySchema } from '../../src/contract/history.ts';
import { autoGroupSchema, groupSchema } from '../../src/contract/config/group.ts';
import { configSchema } from '../../src/contract/config/config.ts';
import { upstreamSchema } from '../../src/contract/config/upstream.ts';
import {
  feedDetailSchema,
  feedGroupsSchema,
  feedSnapshotSchema,
  groupStatusSchema,
  leaseSchema,
  waiterSchema,
} from '../../src/contract/group-status.ts';
import { groupDocumentSchema } from '../../src/admin/resources/groups.ts';
import { keyDocumentSchema } from '../../src/contract/config/keys.ts';
import { testedCallSchema } from '../../src/admin/resources/tester.ts';
import { upstreamDocumentSchema } from '../../src/admin/resources/upstreams.ts';
import { decisionSchema } from '../../src/admin/resources/decisions.ts';
import { historyPointSchema } from '../../src/admin/resources/history.ts';
import { markerSchema } from '../../src/admin/history-events.ts';
import { warningSchema } from '../../src/contract/attention.ts';
import type { AdminRoute } from '../../src/admin/route.ts';
import { ADMIN_ROUTES } from '../../src/admin/routes.ts';
import { shownTeamSchema } from '../../src/admin/resources/teams.ts';
import { rollbackSchema } from '../../src/admin/resources/versions.ts';

type Schemas = Readonly<Record<string, SchemaObject>>;
type SchemaContent = Record<string, { schema: SchemaObject }>;

/** An operation with all parts that Headgate's documents have, none of them as a reference. */
export interface OpenApiOperation extends OperationObject {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  security: SecurityRequirementObject[];
  parameters: ParameterObject[];
  requestBody?: { required: boolean; content: SchemaContent };
  responses: Record<string, ResponseObject & { content: SchemaContent }>;
}

export interface OpenApiDocument extends OpenAPIObject {
  servers: ServerObject[];
  tags: TagObject[];
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: ComponentsObject & { schemas: Schemas };
}

/** Response shapes that are named in the document. */
const NAMED_ANSWERS = {
  Config: configSchema,
  Group: groupSchema,
  AutoGroup: autoGroupSchema,
  Upstream: upstreamSchema,
  UpstreamInfo: upstreamInfoSchema,
  UpstreamDetail: upstreamDetailSchema,
  SuggestedLimits: suggestionSchema,
  Key: keySchema,
  Team: shownTeamSchema,
  AdminKey: adminKeyInfoSchema,
  GroupStatus: groupStatusSchema,
  Lease: leaseSchema,
  Waiter: waiterSchema,
  HistoryPoint: historyPointSchema,
  HistoryMarker: markerSchema,
  Decision: decisionSchema,
  Warning: warningSchema,
  FeedSnapshot: feedSnapshotSchema,
  FeedGroups: feedGroupsSchema,
  FeedDetail: feedDetailSchema,
  AuditEntry: auditEntrySchema,
  Session: sessionSchema,
  TestedCall: testedSchema,
  Problem: problemSchema,
};

/** Request shapes that are named in the document. Fields with a default are optional there. */
const NAMED_BODIES = {
  ConfigDocument: configSchema,
  GroupDocument: groupDocumentSchema,
  UpstreamDocument: upstreamDocumentSchema,
  KeyDocument: keyDocumentSchema,
  CallToTest: testedCallSchema,
  Rollback: rollbackSchema,
};

const TITLES: Record<number, string> = {
  400: 'The body cannot be parsed.',
  401: 'Missing or invalid credentials.',
  403: 'Not allowed for this role, or disabled because `ADMIN_TOKEN` is not set.',
  404: 'Not found.',
  409: 'Conflict with the current state.',
  412: 'The configuration has changed since the version in `If-Match`.',
  413: 'The body is too large.',
  415: 'The `Content-Type` is missing, or is not JSON or YAML.',
  422: 'Invalid values. `errors` has the path of each field.',
  429: 'Too many failed attempts.',
  500: 'Internal error of Headgate.',
  503: 'The directory or a group is unreachable.',
};

const INFO = {
  title: 'Headgate admin API',
  version: '1',
  description:
    'Manage groups, upstreams and keys, and observe their state. Problems follow RFC 9457. Responses to changes have the new version as `ETag`. Send it as `If-Match` to reject a change if the configuration has changed in the meantime.',
};

/** The admin API as OpenAPI 3.1, generated from the schemas that validate its requests. */
export function openApiDocument(): OpenApiDocument {
  const answers = new SchemaSet('output', NAMED_ANSWERS);
  const bodies = new SchemaSet('input', NAMED_BODIES);
  const all = Object.entries<AdminRoute>(ADMIN_ROUTES);
  for (const [, route] of all) {
    if (route.body !== undefined) bodies.add(route.body);
    for (const answer of Object.values(route.answers)) if (answer !== 'text') answers.add(answer);
  }
  const paths: Record<string, Record<string, OpenApiOperation>> = {};
  for (const [name, route] of all) {
    const methods = (paths[route.path] ??= {});
    methods[route.method.toLowerCase()] = operation(name, route, answers, bodies);
  }
  const tags = [...new Set(all.map(([, { tag }]) => tag))];
  return {
    openapi: '3.1.0',
    info: INFO,
    servers: [{ url: '/admin/api' }],
    tags: tags.map((name) => ({ name })),
    paths,
    components: {
      schemas: { ...answers.named(), ...bodies.named() },
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: '`ADMIN_TOKEN`, or an admin key.' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'headgate_session',
          description: 'Session of a browser, as created by `POST /session`.',
        },
      },
    },
  };
}

function operation(
  operationId: string,
  route: AdminRoute,
  answers: SchemaSet,
  bodies: SchemaSet,
): OpenApiOperation {
  const { tag, summary, description, role, body, isBodyOptional } = route;
  const access = role === 'open' ? 'No authentication.' : `Role: ${role}.`;
  return {
    operationId,
    tags: [tag],
    summary,
    description: description === undefined ? access : `${description} ${access}`,
    security: role === 'open' ? [] : [{ token: [] }, { session: [] }],
    parameters: parameters(route),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: isBodyOptional !== true,
            content: { 'application/json': { schema: bodies.of(body) } },
          },
        }),
    responses: responses(route, answers),
  };
}

function parameters(route: AdminRoute): ParameterObject[] {
  const list: ParameterObject[] = [];
  for (const place of ['params', 'query'] as const) {
    for (const [name, field] of Object.entries(route[place]?.shape ?? {})) {
      const { description, ...schema } = schemaOf(field, 'input');
      const required = !field.safeParse(undefined).success;
      const described = description === undefined ? {} : { description };
      list.push({
        name,
        in: place === 'params' ? 'path' : 'query',
        required,
        schema,
        ...described,
      });
    }
  }
  if (route.takesIfMatch === true) {
    const description = '`ETag` of the version to change. Absent means any version.';
    const schema = { type: 'string' } as const;
    list.push({ name: 'If-Match', in: 'header', required: false, schema, description });
  }
  return list;
}

function responses(route: AdminRoute, answers: SchemaSet): OpenApiOperation['responses'] {
  const etag = {
    ETag: { description: 'Version of the configuration.', schema: { type: 'string' } },
  };
  const successes = Object.entries(route.answers).map(([status, answer]) => {
    const content =
      answer === 'text'
        ? { [route.contentType ?? 'text/plain']: { schema: { type: 'string' } } }
        : { 'application/json': { schema: answers.of(answer) } };
    const description =
      status === '201' ? 'Created.' : status === '202' ? 'In progress.' : 'Success.';
    return [status, { description, content, ...(route.hasEtag === true ? { headers: etag } : {}) }];
  });
  const problems = problemsOf(route).map((status) => [
    String(status),
    {
      description: TITLES[status] ?? 'Problem.',
      content: { 'application/problem+json': { schema: answers.of(problemSchema) } },
    },
  ]);
  return Object.fromEntries([...successes, ...problems]) as OpenApiOperation['responses'];
}

function problemsOf(route: AdminRoute): number[] {
  const all = new Set(route.problems ?? []);
  if (route.tag !== 'about') for (const status of [500, 503]) all.add(status);
  if (route.role !== 'open') for (const status of [401, 403, 429]) all.add(status);
  if (route.body !== undefined) for (const status of [400, 413, 415, 422]) all.add(status);
  const isChecked = route.params !== undefined || route.query !== undefined;
  if (isChecked || route.takesIfMatch === true) all.add(422);
  if (route.takesIfMatch === true) for (const status of [409, 412]) all.add(status);
  return [...all].toSorted((a, b) => a - b);
}

/** JSON Schemas of a set of zod schemas. Named ones are written once, and referenced elsewhere. */
class SchemaSet {
  readonly #io: 'input' | 'output';
  readonly #names: readonly string[];
  readonly #registry = z.registry<{ id: string }>();
  #count = 0;
  #made: Schemas | null = null;

  constructor(io: 'input' | 'output', named: Readonly<Record<string, z.ZodType>>) {
    this.#io = io;
    this.#names = Object.keys(named);
    for (const [id, schema] of Object.entries(named)) this.#registry.add(schema, { id });
  }

  add(schema: z.ZodType): void {
    if (this.#registry.has(schema)) return;
    this.#count += 1;
    this.#registry.add(schema, { id: `inline${this.#count}` });
  }

  of(schema: z.ZodType): SchemaObject {
    const id = this.#registry.get(schema)?.id ?? '';
    return this.#names.includes(id) ? { $ref: refTo(id) } : (this.#all()[id] ?? {});
  }

  named(): Schemas {
    return Object.fromEntries(this.#names.map((name) => [name, this.#all()[name] ?? {}]));
  }

  #all(): Schemas {
    this.#made ??= Object.fromEntries(
      Object.entries(z.toJSONSchema(this.#registry, { io: this.#io, uri: refTo }).schemas).map(
        ([id, { $schema: _dialect, $id: _id, ...schema }]) => [id, schema as SchemaObject],
      ),
    );
    return this.#made;
  }
}

function refTo(id: string): string {
  return `#/components/schemas/${id}`;
}

/** JSON Schema of a zod schema, without the dialect, which OpenAPI 3.1 implies. */
export function schemaOf(schema: z.ZodType, io: 'input' | 'output'): SchemaObject {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io });
  // The cast is sound: both are JSON Schema 2020-12.
  return rest as SchemaObject;
}

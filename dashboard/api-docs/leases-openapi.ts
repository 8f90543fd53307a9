import type { ParameterObject } from 'openapi3-ts/oas31';
import type * as z from 'zod';
import { problemSchema } from '../../src/contract/shared-shapes.ts';
import {
  leaseAnswerSchema,
  leaseRequestSchema,
  releaseRequestSchema,
  renewalAnswerSchema,
  reportAnswerSchema,
  reportRequestSchema,
  ticketAnswerSchema,
} from '../../src/contract/caller-api.ts';
import { schemaOf, type OpenApiDocument, type OpenApiOperation } from './openapi.ts';

interface OperationDescription {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly schema: z.ZodType; readonly isOptional?: true };
  /** Successful responses by status. null if the body is empty. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>;
  readonly problems: readonly number[];
}

const ROUTES: Readonly<Record<string, OperationDescription>> = {
  'post /leases': {
    operationId: 'acquireLease',
    summary: 'Acquire a slot in every group of a call',
    description:
      'Requires a gateway key with `allow: [lease]`, unless the configuration has `leases: open`. The lease is granted immediately, or the request is parked for at most 25 s and then answered with 202. In that case, retry with the same body and the `ticket`.',
    headers: {
      'idempotency-key':
        'A name that the client chooses, at most 256 characters. A retried request with the same name, group, upstream, model and slots belongs to the same ticket, and gets the same lease.',
      prefer: '`wait=10` parks the request for at most 10 seconds. `wait=0` does not park it.',
    },
    body: { schema: leaseRequestSchema },
    answers: { 201: leaseAnswerSchema, 202: ticketAnswerSchema },
    problems: [400, 401, 402, 403, 404, 409, 410, 413, 415, 424, 429, 503],
  },
  'put /leases/{lease}': {
    operationId: 'renewLease',
    summary: 'Renew a lease',
    description:
      'Renew the lease within `renew_within_ms` of each response, or it expires. 410 means that the lease was revoked, has ended, or reached its maximum hold time. In that case, stop the call.',
    answers: { 200: renewalAnswerSchema },
    problems: [401, 403, 404, 410, 503],
  },
  'patch /leases/{lease}': {
    operationId: 'reportLease',
    summary: 'Report the response of the provider',
    description:
      'Headgate interprets it like the response to a proxied call. A refusal pauses the group, or slows it down.',
    body: { schema: reportRequestSchema },
    answers: { 200: reportAnswerSchema },
    problems: [400, 401, 403, 404, 415, 503],
  },
  'delete /leases/{lease}': {
    operationId: 'releaseLease',
    summary: 'Release a lease',
    description:
      'Idempotent. If the key has `allow: [lease_usage]`, token limits and budgets count the reported `usage`. Otherwise, they count the reservation.',
    body: { schema: releaseRequestSchema, isOptional: true },
    answers: { 204: null },
    problems: [400, 401, 403, 404, 415, 503],
  },
  'delete /tickets/{ticket}': {
    operationId: 'leaveQueue',
    summary: 'Leave the queue',
    description: 'Idempotent. Also releases slots that were granted to the ticket in the meantime.',
    answers: { 204: null },
    problems: [401, 403, 404, 503],
  },
};

const PARAMETERS: Readonly<Record<string, string>> = {
  lease: 'Lease token, as returned by `POST /leases` or by the last renewal.',
  ticket: 'Ticket, as returned by a 202 of `POST /leases` or by a report.',
};

const PROBLEMS: Readonly<Record<number, string>> = {
  400: 'Invalid request. `detail` describes the invalid part.',
  401: 'The key is missing or invalid.',
  402: 'The remaining budget does not cover the call.',
  403: 'The key may not acquire leases, or may not use the group.',
  404: 'Unknown group, upstream, model, lease or ticket.',
  409: 'An operator removed the request from the queue, or it would wait for its own parent.',
  410: 'The lease was revoked, has ended, or reached its maximum hold time.',
  413: 'The request exceeds a limit of the group on its own.',
  415: 'The `Content-Type` is not JSON.',
  424: 'An operator must act first, such as by setting a missing secret.',
  429: 'The queue is full, the wait is too long, or the upstream has reached its limit.',
  503: 'The group is paused, draining or unreachable, or its upstream fails.',
};

/** The lease routes as OpenAPI 3.1, generated from the schemas that validate them. */
export function leasesOpenApi(): OpenApiDocument {
  const paths: Record<string, Record<string, OpenApiOperation>> = {};
  for (const [key, route] of Object.entries(ROUTES)) {
    const [method = '', path = ''] = key.split(' ');
    (paths[path] ??= {})[method] = operation(path, route);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Headgate leases',
      version: '1',
      description:
        'Slots for calls that Headgate cannot proxy. Authentication is the same as for calls. Problems follow RFC 9457, with `reason` in the body and in `headgate-reason`.',
    },
    servers: [{ url: '/' }],
    tags: [{ name: 'leases' }],
    paths,
    components: {
      schemas: { Problem: schemaOf(problemSchema, 'output') },
      securitySchemes: {
        key: { type: 'apiKey', in: 'header', name: 'headgate-key', description: 'A gateway key.' },
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'A gateway key, or a provider key if the configuration has `leases: open`.',
        },
      },
    },
  };
}

function operation(
  path: string,
  {
    operationId,
    summary,
    description,
    headers = {},
    body,
    answers,
    problems,
  }: OperationDescription,
): OpenApiOperation {
  const named = /\{(\w+)\}/.exec(path)?.[1];
  const text = { type: 'string' } as const;
  const inPath: ParameterObject[] =
    named === undefined
      ? []
      : [
          {
            name: named,
            in: 'path',
            required: true,
            schema: text,
            description: PARAMETERS[named] ?? '',
          },
        ];
  const inHeaders = Object.entries(headers).map(([name, meaning]): ParameterObject => ({
    name,
    in: 'header',
    required: false,
    schema: text,
    description: meaning,
  }));
  return {
    operationId,
    tags: ['leases'],
    summary,
    description,
    security: [{ key: [] }, { bearer: [] }],
    parameters: [...inPath, ...inHeaders],
    ...(body !== undefined && {
      requestBody: {
        required: body.isOptional !== true,
        content: { 'application/json': { schema: schemaOf(body.schema, 'input') } },
      },
    }),
    responses: Object.fromEntries([...answersOf(answers), ...problemsOf(problems)]),
  };
}

type Responses = [string, OpenApiOperation['responses'][string]][];

function answersOf(answers: OperationDescription['answers']): Responses {
  return Object.entries(answers).map(([status, schema]) => [
    status,
    {
      description: status === '202' ? 'The request is queued.' : 'Success.',
      content:
        schema === null ? {} : { 'application/json': { schema: schemaOf(schema, 'output') } },
    },
  ]);
}

function problemsOf(problems: readonly number[]): Responses {
  const schema = { $ref: '#/components/schemas/Problem' };
  const content = { 'application/problem+json': { schema } };
  return problems.map((status) => [
    String(status),
    { description: PROBLEMS[status] ?? 'Problem.', content },
  ]);
}

import * as z from 'zod';
import { problemSchema } from './admin/answer-schemas.ts';
import type { OpenApiDocument, OpenApiOperation, OpenApiParameter } from './admin/openapi.ts';
import {
  leaseAnswerSchema,
  leaseRequestSchema,
  releaseRequestSchema,
  renewalAnswerSchema,
  reportAnswerSchema,
  reportRequestSchema,
  ticketAnswerSchema,
} from './leases.ts';

/** One route of a caller's, in the words of the document. */
interface OperationDescription {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly schema: z.ZodType; readonly isOptional?: true };
  /** Answers when all is well, by status; null: nothing is in it. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>;
  readonly problems: readonly number[];
}

const ROUTES: Readonly<Record<string, OperationDescription>> = {
  'post /leases': {
    operationId: 'acquireLease',
    summary: 'Ask for a slot in every group that a call belongs to.',
    description:
      'Requires a gateway key with `allow: [lease]`, unless the configuration says `leases: open`. The lease is granted at once, or the request is parked for at most 25 s and then answered with 202: retry with the same body and the `ticket`.',
    headers: {
      'idempotency-key':
        'A name of the caller’s, of 256 characters at the most: a request that is sent again with it, and the same group, upstream, model and slots, is the same ticket and gets the same lease.',
      prefer: '`wait=10` has it parked for so many seconds at the most; `wait=0` not at all.',
    },
    body: { schema: leaseRequestSchema },
    answers: { 201: leaseAnswerSchema, 202: ticketAnswerSchema },
    problems: [400, 401, 402, 403, 404, 409, 410, 413, 415, 424, 429, 503],
  },
  'put /leases/{lease}': {
    operationId: 'renewLease',
    summary: 'Renew a lease.',
    description: '410: it was taken away, has ended, or was held for as long as it may be. Stop.',
    answers: { 200: renewalAnswerSchema },
    problems: [401, 403, 404, 410, 503],
  },
  'patch /leases/{lease}': {
    operationId: 'reportLease',
    summary: 'Tell what the provider said to the call.',
    description:
      'Read as the answer to a proxied call is: a refusal pauses the group, or slows it.',
    body: { schema: reportRequestSchema },
    answers: { 200: reportAnswerSchema },
    problems: [400, 401, 403, 404, 415, 503],
  },
  'delete /leases/{lease}': {
    operationId: 'releaseLease',
    summary: 'Give the slots back. The second time changes nothing.',
    description: 'With what the call has used, limits of tokens and budgets are settled.',
    body: { schema: releaseRequestSchema, isOptional: true },
    answers: { 204: null },
    problems: [400, 401, 403, 404, 415, 503],
  },
  'delete /tickets/{ticket}': {
    operationId: 'leaveQueue',
    summary: 'Leave the queue. The second time changes nothing.',
    description: 'What was granted to the ticket meanwhile is given back too.',
    answers: { 204: null },
    problems: [401, 403, 404, 503],
  },
};

/** The routes of leases as OpenAPI 3.1 describes them, made of the schemas that their handlers check by. */
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
        'Slots for calls that Headgate cannot pass on. Authentication is that of calls. Problems are RFC 9457, with `reason` in the body and in `headgate-reason`.',
    },
    servers: [{ url: '/' }],
    tags: [{ name: 'leases' }],
    paths,
    components: {
      schemas: { Problem: jsonSchema(problemSchema, 'output') },
      securitySchemes: {
        key: { type: 'apiKey', in: 'header', name: 'headgate-key' },
        bearer: { type: 'http', scheme: 'bearer' },
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
  const text = { type: 'string' };
  const inPath: OpenApiParameter[] =
    named === undefined ? [] : [{ name: named, in: 'path', required: true, schema: text }];
  const inHeaders = Object.entries(headers).map(([name, says]): OpenApiParameter => ({
    name,
    in: 'header',
    required: false,
    schema: text,
    description: says,
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
        content: { 'application/json': { schema: jsonSchema(body.schema, 'input') } },
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
      description: status === '202' ? 'It waits.' : 'Done.',
      content:
        schema === null ? {} : { 'application/json': { schema: jsonSchema(schema, 'output') } },
    },
  ]);
}

function problemsOf(problems: readonly number[]): Responses {
  const schema = { $ref: '#/components/schemas/Problem' };
  const content = { 'application/problem+json': { schema } };
  return problems.map((status) => [String(status), { description: 'A problem.', content }]);
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): unknown {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io });
  return rest;
}

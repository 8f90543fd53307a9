import * as z from 'zod';
import { configSchema } from '../config/config.ts';
import { upstreamSchema } from '../config/upstream-config.ts';
import { METHODS } from '../methods.ts';
import { LANES } from '../../core/words/ticket.ts';
import {
  auditPageSchema,
  changedConfigSchema,
  changedSchema,
  changedUpstreamSchema,
  pageOf,
  testedSchema,
  upstreamDetailSchema,
  upstreamInfoSchema,
} from './answer-schemas.ts';
import { mergePatchSchema, pageQuery } from './group-routes.ts';
import { routes } from './route.ts';
import { groupStatusSchema } from './status-schemas.ts';

const params = z.strictObject({
  id: z.string().min(1).max(300).describe('Id of the upstream.'),
});

/** An upstream as the body of `PUT`. The id is in the path. */
export const upstreamDocumentSchema = upstreamSchema
  .extend({ id: z.string().optional().describe('If present, the same as in the path.') })
  .describe(
    'An upstream. Omitted fields have their defaults, or the values of the built-in upstream.',
  );

export const testedCallSchema = z.strictObject({
  model: z
    .string()
    .min(1)
    .max(300)
    .nullable()
    .default(null)
    .describe(
      'Model as sent by the caller. `anthropic/claude-…` also names the upstream. null if the call names none.',
    ),
  upstream: z
    .string()
    .min(1)
    .max(100)
    .nullable()
    .default(null)
    .describe(
      'Id of the upstream, as in the path or in `headgate-upstream`. null means that the upstream is chosen as for `/v1/*`.',
    ),
  key: z
    .string()
    .min(1)
    .max(100)
    .nullable()
    .default(null)
    .describe(
      'Id of a gateway key, or fingerprint of a provider key. Never the key itself. null means no key.',
    ),
  operation: z
    .string()
    .min(1)
    .max(100)
    .default('chat')
    .describe('Operation, as in `match.operations`, if there is no path.'),
  path: z
    .string()
    .max(2_000)
    .regex(/^\/[^?#]*$/, 'expected a path below the base URL, such as /v1/custom/run')
    .nullable()
    .default(null)
    .describe(
      'Path below the base URL of its upstream, such as `/v1/custom/run`. null means a path of the operation that no `match.paths` matches.',
    ),
  method: z.enum(METHODS).default('POST').describe('Method of the request.'),
  shape: z
    .enum(['openai', 'anthropic'])
    .default('openai')
    .describe('API shape of the request at `/v1/*`.'),
  lane: z
    .enum(LANES)
    .nullable()
    .default(null)
    .describe('Lane in `headgate-lane`. null if there is none.'),
  headers: z
    .record(z.string().max(100), z.string().max(1_000))
    .default({})
    .describe('Request headers by which groups are split.'),
});

export const CONFIG_ROUTES = routes({
  getConfig: {
    tag: 'configuration',
    summary: 'Get the whole configuration as JSON or YAML',
    role: 'admin',
    query: z.strictObject({
      format: z
        .enum(['json', 'yaml'])
        .optional()
        .describe('Format of the response. Defaults to that in `Accept`, or to JSON.'),
      version: z.coerce
        .number()
        .int()
        .min(0)
        .optional()
        .describe('A stored version. Defaults to the current one.'),
    }),
    answers: { 200: configSchema },
    hasEtag: true,
  },
  putConfig: {
    tag: 'configuration',
    summary: 'Replace the whole configuration',
    description: 'Admin keys stay unchanged if the document has no `admin_keys`.',
    role: 'admin',
    body: configSchema,
    readsBody: true,
    answers: { 200: changedConfigSchema },
    hasEtag: true,
    takesIfMatch: true,
  },
  fingerprint: {
    tag: 'configuration',
    summary: 'Compute the fingerprint and the hash of a key',
    role: 'operator',
    body: z.strictObject({ key: z.string().min(1).max(10_000).describe('The key itself.') }),
    answers: {
      200: z.object({
        fingerprint: z.string().describe('Fingerprint of a provider key for `match.keys`.'),
        hash: z.string().describe('SHA-256 of a gateway key for `keys`.'),
      }),
    },
  },
  listAudit: {
    tag: 'configuration',
    summary: 'List the audit log, the newest entries first',
    role: 'viewer',
    query: pageQuery.extend({
      actor: z.string().min(1).max(300).optional().describe('Exact name of the actor.'),
      action: z
        .string()
        .min(1)
        .max(300)
        .optional()
        .describe('Prefix of the action, such as `group openai-shared:`.'),
      since: z.iso.datetime().optional().describe('Start of the period, in UTC.'),
      until: z.iso.datetime().optional().describe('End of the period, in UTC. Exclusive.'),
    }),
    answers: { 200: auditPageSchema },
  },
  testCall: {
    tag: 'configuration',
    summary: 'Find the upstream and groups of a call',
    role: 'viewer',
    body: testedCallSchema,
    answers: { 200: testedSchema },
  },
  getStatus: {
    tag: 'status',
    summary: 'Get the current state of all groups',
    role: 'viewer',
    answers: {
      200: z.object({
        version: z.int().min(0).describe('Version of the configuration.'),
        paused: z.boolean().describe('Whether the whole deployment is paused.'),
        groups: z.array(groupStatusSchema).describe('All groups, configured ones first.'),
      }),
    },
  },
  getIsolate: {
    tag: 'status',
    summary: 'Get figures of the Worker isolate that responds',
    description:
      'The platform chooses the isolate, and usually another one for the next request. The figures start at 0 with the isolate.',
    role: 'viewer',
    answers: {
      200: z.object({
        id: z.string().describe('Random name of the isolate.'),
        release: z.string().describe('Release of Headgate.'),
        config_reads: z
          .int()
          .min(0)
          .describe('Requests that needed the configuration, mostly calls.'),
        config_waits: z
          .int()
          .min(0)
          .describe('Requests that waited for it because the copy was outdated or missing.'),
      }),
    },
  },
});

export const UPSTREAM_ROUTES = routes({
  listUpstreams: {
    tag: 'upstreams',
    summary: 'List upstreams by id, with the observations of their groups',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('upstreams', upstreamInfoSchema) },
    hasEtag: true,
  },
  getUpstream: {
    tag: 'upstreams',
    summary: 'Get an upstream',
    role: 'viewer',
    params,
    answers: { 200: upstreamDetailSchema },
    hasEtag: true,
    problems: [404],
  },
  putUpstream: {
    tag: 'upstreams',
    summary: 'Create or replace an upstream, or override a built-in one',
    role: 'admin',
    params,
    body: upstreamDocumentSchema,
    answers: { 200: changedUpstreamSchema, 201: changedUpstreamSchema },
    hasEtag: true,
    takesIfMatch: true,
  },
  patchUpstream: {
    tag: 'upstreams',
    summary: 'Change fields of an upstream',
    description:
      'A JSON merge patch (RFC 7396) of an `Upstream`. null restores the default of a field. Patching a built-in upstream creates an entry for it.',
    role: 'admin',
    params,
    body: mergePatchSchema,
    answers: { 200: changedUpstreamSchema, 201: changedUpstreamSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
  deleteUpstream: {
    tag: 'upstreams',
    summary: 'Remove the entry of an upstream',
    description: 'A built-in upstream returns to its defaults.',
    role: 'admin',
    params,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
});

export const ABOUT_ROUTES = routes({
  getOpenApi: {
    tag: 'about',
    summary: 'Get this document as OpenAPI',
    role: 'open',
    answers: {
      200: z.looseObject({
        openapi: z.literal('3.1.0').describe('Version of OpenAPI.'),
      }),
    },
  },
  getDocs: {
    tag: 'about',
    summary: 'Get this document as a page',
    role: 'open',
    query: z.strictObject({
      q: z.string().max(100).optional().describe('Words by which to filter the routes.'),
    }),
    answers: { 200: 'text' },
    contentType: 'text/html',
  },
});

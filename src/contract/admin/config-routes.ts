import * as z from 'zod';
import { configSchema } from '../config/config.ts';
import { upstreamSchema } from '../config/upstream-config.ts';
import { foreignSchemas } from '../config/foreign-schemas.ts';
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

/** An upstream as `PUT` takes it: its id stands in the path already. */
export const upstreamDocumentSchema = upstreamSchema
  .extend({ id: z.string().optional().describe('As in the path, or absent.') })
  .describe('An upstream; whatever is left out has its default, or is as built in.');

/** A call, as far as it decides about groups. */
export const testedCallSchema = z.strictObject({
  model: z
    .string()
    .min(1)
    .max(300)
    .nullable()
    .default(null)
    .describe('Model as the caller sends it; `anthropic/claude-…` names the upstream too.'),
  upstream: z
    .string()
    .min(1)
    .max(100)
    .nullable()
    .default(null)
    .describe(
      'Id in the path, or in `headgate-upstream`. Null: the upstream is chosen as by `/v1/*`.',
    ),
  key: z
    .string()
    .min(1)
    .max(100)
    .nullable()
    .default(null)
    .describe('Id of a gateway key, or fingerprint of a provider key. Never a key.'),
  operation: z
    .string()
    .min(1)
    .max(100)
    .default('chat')
    .describe('Operation, as in `match.operations`, where no path says it.'),
  path: z
    .string()
    .max(2_000)
    .regex(/^\/[^?#]*$/, 'expected a path behind the base URL, as in /v1/custom/run')
    .nullable()
    .default(null)
    .describe(
      'Path behind the base URL of its upstream, as in `/v1/custom/run`. Null: any of the operation, which no `match.paths` names.',
    ),
  method: z.enum(METHODS).default('POST').describe('Method by which the path is called.'),
  shape: z
    .enum(['openai', 'anthropic'])
    .default('openai')
    .describe('Shape of the request at `/v1/*`.'),
  lane: z
    .enum(LANES)
    .nullable()
    .default(null)
    .describe('Lane that it asks for with `headgate-lane`. Null: none.'),
  headers: z
    .record(z.string().max(100), z.string().max(1_000))
    .default({})
    .describe('Headers that groups are split by.'),
});

/** The configuration and everything about it. */
export const CONFIG_ROUTES = routes({
  getConfig: {
    tag: 'configuration',
    summary: 'The whole configuration, as JSON or YAML',
    role: 'admin',
    query: z.strictObject({
      format: z
        .enum(['json', 'yaml'])
        .optional()
        .describe('Form of the answer. Absent: as `Accept` says, else JSON.'),
      version: z.coerce
        .number()
        .int()
        .min(0)
        .optional()
        .describe('A version that is kept. Absent: the one in force.'),
    }),
    answers: { 200: configSchema },
    hasEtag: true,
  },
  putConfig: {
    tag: 'configuration',
    summary: 'Replaces the whole configuration',
    description:
      'A document of one of the foreign shapes replaces the groups only. Admin keys that the document does not mention stay.',
    role: 'admin',
    body: z.union([configSchema, ...foreignSchemas]),
    readsBody: true,
    answers: { 200: changedConfigSchema },
    hasEtag: true,
    takesIfMatch: true,
  },
  fingerprint: {
    tag: 'configuration',
    summary: 'What stands for a key in `match.keys`, and in `keys`',
    role: 'operator',
    body: z.strictObject({ key: z.string().min(1).max(10_000).describe('The key itself.') }),
    answers: {
      200: z.object({
        fingerprint: z.string().describe('What `match.keys` takes for a provider key.'),
        hash: z.string().describe('What `keys` takes for a gateway key: its SHA-256.'),
      }),
    },
  },
  listAudit: {
    tag: 'configuration',
    summary: 'Who changed what, newest first',
    role: 'viewer',
    query: pageQuery.extend({
      actor: z.string().min(1).max(300).optional().describe('Exactly this actor.'),
      action: z
        .string()
        .min(1)
        .max(300)
        .optional()
        .describe('Beginning of the action, as in `group openai-shared:`.'),
      since: z.iso.datetime().optional().describe('From this instant on, in UTC.'),
      until: z.iso.datetime().optional().describe('Before this instant, in UTC.'),
    }),
    answers: { 200: auditPageSchema },
  },
  testCall: {
    tag: 'configuration',
    summary: 'Which groups would this call take?',
    role: 'viewer',
    body: testedCallSchema,
    answers: { 200: testedSchema },
  },
  getStatus: {
    tag: 'status',
    summary: 'The state of all groups at this moment',
    role: 'viewer',
    answers: {
      200: z.object({
        version: z.int().min(0).describe('Version of the configuration.'),
        paused: z.boolean().describe('Whether everything is paused.'),
        groups: z.array(groupStatusSchema).describe('Every group, configured ones first.'),
      }),
    },
  },
  getIsolate: {
    tag: 'status',
    summary: 'What the isolate of the Worker that answers knows of itself',
    description:
      'The platform chooses the isolate, and mostly another one for the next request. Its figures begin at 0 with it.',
    role: 'viewer',
    answers: {
      200: z.object({
        id: z.string().describe('Its name, made up at random.'),
        release: z
          .string()
          .exactOptional()
          .describe('Release of Headgate. Absent: one before 0.1.0.'),
        config_reads: z
          .int()
          .min(0)
          .describe('Requests that needed the configuration, calls above all.'),
        config_waits: z
          .int()
          .min(0)
          .describe('Those that waited for it, because its copy was too old or not there.'),
      }),
    },
  },
});

/** Upstreams, built in and configured. */
export const UPSTREAM_ROUTES = routes({
  listUpstreams: {
    tag: 'upstreams',
    summary: 'Upstreams by id, with what their groups have seen of them',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('upstreams', upstreamInfoSchema) },
    hasEtag: true,
  },
  getUpstream: {
    tag: 'upstreams',
    summary: 'One upstream',
    role: 'viewer',
    params,
    answers: { 200: upstreamDetailSchema },
    hasEtag: true,
    problems: [404],
  },
  putUpstream: {
    tag: 'upstreams',
    summary: 'Configures an upstream, or what is different about a built-in one',
    role: 'admin',
    params,
    body: upstreamDocumentSchema,
    answers: { 200: changedUpstreamSchema, 201: changedUpstreamSchema },
    hasEtag: true,
    takesIfMatch: true,
  },
  patchUpstream: {
    tag: 'upstreams',
    summary: 'Changes what is sent; null brings a default back',
    description:
      'A JSON merge patch (RFC 7396) of an `Upstream`. A built-in one gets an entry by it.',
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
    summary: 'Removes what is configured of an upstream; a built-in one is as it was',
    role: 'admin',
    params,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
});

/** The description of the API itself. */
export const ABOUT_ROUTES = routes({
  getOpenApi: {
    tag: 'about',
    summary: 'This document',
    role: 'open',
    answers: {
      200: z.looseObject({
        openapi: z.literal('3.1.0').describe('Version of OpenAPI that the document keeps to.'),
      }),
    },
  },
  getDocs: {
    tag: 'about',
    summary: 'This document as a page',
    role: 'open',
    query: z.strictObject({
      q: z.string().max(100).optional().describe('Words that a route must have to be shown.'),
    }),
    answers: { 200: 'text' },
    contentType: 'text/html',
  },
  getDocsStyle: {
    tag: 'about',
    summary: 'The style of that page',
    role: 'open',
    answers: { 200: 'text' },
    contentType: 'text/css',
  },
});

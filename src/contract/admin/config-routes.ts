import * as z from 'zod';
import { configSchema, upstreamSchema } from '../config/config.ts';
import { foreignSchemas } from '../config/foreign-schemas.ts';
import { LANES } from '../../core/words/ticket.ts';
import {
  auditPageSchema,
  changedConfigSchema,
  changedSchema,
  changedUpstreamSchema,
  pageOf,
  testedSchema,
  upstreamInfoSchema,
} from './answer-schemas.ts';
import { mergePatchSchema, pageQuery } from './group-routes.ts';
import { routes } from './route.ts';
import { groupStatusSchema } from './status-schemas.ts';

const params = z.strictObject({ id: z.string().min(1).max(300) });

/** An upstream as `PUT` takes it: its id stands in the path already. */
export const upstreamDocumentSchema = upstreamSchema.extend({ id: z.string().optional() });

/** A call, as far as it decides about groups. */
export const testedCallSchema = z.strictObject({
  /** As the caller sends it; `anthropic/claude-…` names the upstream too. */
  model: z.string().min(1).max(300).nullable().default(null),
  /** The id in the path, or in `headgate-upstream`. Null: chosen as `/v1/*` does. */
  upstream: z.string().min(1).max(100).nullable().default(null),
  /** Id of a gateway key, or fingerprint of a provider key. Never a key. */
  key: z.string().min(1).max(100).nullable().default(null),
  operation: z.string().min(1).max(100).default('chat'),
  shape: z.enum(['openai', 'anthropic']).default('openai'),
  lane: z.enum(LANES).nullable().default(null),
  /** Headers that groups are split by. */
  headers: z.record(z.string().max(100), z.string().max(1_000)).default({}),
});

/** The configuration and everything about it. */
export const CONFIG_ROUTES = routes({
  getConfig: {
    method: 'GET',
    path: '/config',
    tag: 'configuration',
    summary: 'The whole configuration, as JSON or YAML',
    role: 'admin',
    query: z.strictObject({ format: z.enum(['json', 'yaml']).optional() }),
    answers: { 200: configSchema },
    hasEtag: true,
  },
  putConfig: {
    method: 'PUT',
    path: '/config',
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
    method: 'POST',
    path: '/fingerprint',
    tag: 'configuration',
    summary: 'What stands for a key in `match.keys`, and in `keys`',
    role: 'operator',
    body: z.strictObject({ key: z.string().min(1).max(10_000) }),
    answers: { 200: z.object({ fingerprint: z.string(), hash: z.string() }) },
  },
  listAudit: {
    method: 'GET',
    path: '/audit',
    tag: 'configuration',
    summary: 'Who changed what, newest first',
    role: 'viewer',
    query: pageQuery.extend({
      /** Exactly this actor. */
      actor: z.string().min(1).max(300).optional(),
      /** Actions that begin so, as in `group openai-shared:`. */
      action: z.string().min(1).max(300).optional(),
      since: z.iso.datetime().optional(),
      until: z.iso.datetime().optional(),
    }),
    answers: { 200: auditPageSchema },
  },
  testCall: {
    method: 'POST',
    path: '/tester',
    tag: 'configuration',
    summary: 'Which groups would this call take?',
    role: 'viewer',
    body: testedCallSchema,
    answers: { 200: testedSchema },
  },
  getStatus: {
    method: 'GET',
    path: '/status',
    tag: 'status',
    summary: 'The state of all groups at this moment',
    role: 'viewer',
    answers: { 200: z.object({ version: z.int().min(0), groups: z.array(groupStatusSchema) }) },
  },
});

/** Upstreams, built in and configured. */
export const UPSTREAM_ROUTES = routes({
  listUpstreams: {
    method: 'GET',
    path: '/upstreams',
    tag: 'upstreams',
    summary: 'Upstreams by id, with what their groups have seen of them',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('upstreams', upstreamInfoSchema) },
    hasEtag: true,
  },
  getUpstream: {
    method: 'GET',
    path: '/upstreams/{id}',
    tag: 'upstreams',
    summary: 'One upstream',
    role: 'viewer',
    params,
    answers: { 200: upstreamInfoSchema },
    hasEtag: true,
    problems: [404],
  },
  putUpstream: {
    method: 'PUT',
    path: '/upstreams/{id}',
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
    method: 'PATCH',
    path: '/upstreams/{id}',
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
    method: 'DELETE',
    path: '/upstreams/{id}',
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
    method: 'GET',
    path: '/openapi.json',
    tag: 'about',
    summary: 'This document',
    role: 'open',
    answers: { 200: z.looseObject({ openapi: z.literal('3.1.0') }) },
  },
  getDocs: {
    method: 'GET',
    path: '/docs',
    tag: 'about',
    summary: 'This document as a page',
    role: 'open',
    answers: { 200: 'text' },
    contentType: 'text/html',
  },
  getDocsStyle: {
    method: 'GET',
    path: '/docs.css',
    tag: 'about',
    summary: 'The style of that page',
    role: 'open',
    answers: { 200: 'text' },
    contentType: 'text/css',
  },
});

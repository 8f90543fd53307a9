import * as z from 'zod';
import { statusOfAll } from './status.ts';
import {
  BUILT_IN_IDS,
  entryOf,
  infoOf,
  suggestionsFor,
  upstreamDetailSchema,
  upstreamInfoSchema,
} from '../upstream-view.ts';
import { changedSchema, mergePatchSchema, pageByName, pageOf, pageQuery } from '../shapes.ts';
import { check, madeOr, route } from '../route.ts';
import { ProblemError, type AdminContext } from '../context.ts';
import { changeConfig, inEntry, mergePatch, requireSameName, withEntry } from '../change.ts';
import { readDirectory } from '../../overview/pools.ts';
import { upstreamSchema, type UpstreamConfig } from '../../contract/config/upstream.ts';
import type { Config } from '../../contract/config/config.ts';

export const changedUpstreamSchema = changedSchema.extend({ upstream: upstreamSchema });

const upstreamParams = z.strictObject({
  id: z.string().min(1).max(300).describe('Id of the upstream.'),
});

/** An upstream as the body of `PUT`. The id is in the path. */
export const upstreamDocumentSchema = upstreamSchema
  .extend({ id: z.string().optional().describe('If present, the same as in the path.') })
  .describe(
    'An upstream. Omitted fields have their defaults, or the values of the built-in upstream.',
  );

export const UPSTREAM_ROUTES = {
  listUpstreams: route('GET /upstreams', {
    tag: 'upstreams',
    summary: 'List upstreams by id, with the observations of their groups',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('upstreams', upstreamInfoSchema) },
    hasEtag: true,
  }).servedBy(async ({ context, query }) => {
    const directory = await readDirectory(context.env);
    const { version, config } = directory;
    const { items, next_cursor } = pageByName(allIds(config), (id) => id, query);
    const groups = await statusOfAll(context, directory);
    const upstreams = items.map((id) => infoOf(id, config, context, groups));
    return { status: 200, body: { version, upstreams, next_cursor }, version };
  }),

  getUpstream: route('GET /upstreams/{id}', {
    tag: 'upstreams',
    summary: 'Get an upstream',
    role: 'viewer',
    params: upstreamParams,
    answers: { 200: upstreamDetailSchema },
    hasEtag: true,
    problems: [404],
  }).servedBy(async ({ context, params: { id } }) => {
    const directory = await readDirectory(context.env);
    const { version, config } = directory;
    if (!allIds(config).includes(id)) throw noUpstream(id);
    const groups = await statusOfAll(context, directory);
    const info = infoOf(id, config, context, groups);
    const seen = groups.flatMap(({ name, limits_seen = [] }) =>
      limits_seen.filter(({ upstream }) => upstream === id).map((one) => ({ ...one, group: name })),
    );
    const suggested = suggestionsFor(id, config);
    const body = { ...info, suggested_limits: suggested, seen_limits: seen };
    return { status: 200, body, version };
  }),

  putUpstream: route('PUT /upstreams/{id}', {
    tag: 'upstreams',
    summary: 'Create or replace an upstream, or override a built-in one',
    role: 'admin',
    params: upstreamParams,
    body: upstreamDocumentSchema,
    answers: { 200: changedUpstreamSchema, 201: changedUpstreamSchema },
    hasEtag: true,
    takesIfMatch: true,
  }).servedBy(({ context, params: { id }, body }) =>
    changeUpstream(context, id, 'put', () => parseUpstream(id, body)),
  ),

  patchUpstream: route('PATCH /upstreams/{id}', {
    tag: 'upstreams',
    summary: 'Change fields of an upstream',
    description:
      'A JSON merge patch (RFC 7396) of an `Upstream`. null restores the default of a field. Patching a built-in upstream creates an entry for it.',
    role: 'admin',
    params: upstreamParams,
    body: mergePatchSchema,
    answers: { 200: changedUpstreamSchema, 201: changedUpstreamSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  }).servedBy(({ context, params: { id }, body }) =>
    changeUpstream(context, id, 'patch', (config) => {
      const entry = entryOf(config, id);
      if (entry === null && !BUILT_IN_IDS.has(id)) throw noUpstream(id);
      return parseUpstream(id, mergePatch(entry ?? {}, body));
    }),
  ),

  deleteUpstream: route('DELETE /upstreams/{id}', {
    tag: 'upstreams',
    summary: 'Remove the entry of an upstream',
    description: 'A built-in upstream returns to its defaults.',
    role: 'admin',
    params: upstreamParams,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  }).servedBy(async ({ context, params: { id } }) => {
    const { version, warnings } = await changeConfig(context, {
      action: `upstream ${id}: delete`,
      next: (config) => {
        const gone = entryOf(config, id);
        if (gone === null) throw noUpstream(id);
        return { ...config, upstreams: config.upstreams.filter((entry) => entry !== gone) };
      },
    });
    return { status: 200, body: { version, warnings }, version };
  }),
};

async function changeUpstream(
  context: AdminContext,
  id: string,
  verb: string,
  edited: (config: Config) => UpstreamConfig,
) {
  const { version, before, config, warnings } = await changeConfig(context, {
    action: `upstream ${id}: ${verb}`,
    next: (present) => ({ ...present, upstreams: withEntry(present.upstreams, edited(present)) }),
    pathOf: inEntry('upstreams', id),
  });
  const upstream = entryOf(config, id);
  if (upstream === null) throw noUpstream(id);
  return madeOr(entryOf(before, id) === null, { body: { version, upstream, warnings }, version });
}

function parseUpstream(id: string, document: unknown): UpstreamConfig {
  const upstream = check(upstreamSchema, { id, ...Object(document) });
  requireSameName(upstream, id, 'An upstream');
  return upstream;
}

function allIds(config: Config): string[] {
  return [...new Set([...BUILT_IN_IDS, ...config.upstreams.map(({ id }) => id)])];
}

function noUpstream(id: string): ProblemError {
  return new ProblemError(404, `There is no upstream \`${id}\`.`);
}

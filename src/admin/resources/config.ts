import * as z from 'zod';
import { readVersion } from './versions.ts';
import { changedConfigSchema, pageQuery } from '../shapes.ts';
import { etag, invalid, readDocument, route } from '../route.ts';
import { importEdit, changeConfig, currentSnapshot } from '../change.ts';
import type { AdminContext } from '../context.ts';
import { prefersType } from '../../runtime/header-value.ts';
import { fingerprint, gatewayKeyHash } from '../../runtime/secrets.ts';
import { directoryOf } from '../../env.ts';
import { configSchema } from '../../contract/config/config.ts';
import { auditEntrySchema } from '../../contract/history.ts';
import { exportConfig } from '../../config/own-config.ts';

export const auditPageSchema = z.object({
  entries: z.array(auditEntrySchema).describe('Entries, the newest first.'),
  next_cursor: z
    .string()
    .nullable()
    .describe('Send it as `cursor` to get the next page. null on the last page.'),
});

export const CONFIG_ROUTES = {
  getConfig: route('GET /config', {
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
  }).servedBy(async ({ context, query }) => {
    const current = await currentSnapshot(context.env);
    const { version = current.version } = query;
    const config =
      version === current.version
        ? current.config
        : await readVersion(context.env, version, 'version');
    const format = query.format ?? (wantsYaml(context) ? 'yaml' : 'json');
    return new Response(exportConfig(config, format), {
      headers: { etag: etag(version), 'content-type': `application/${format}` },
    });
  }),

  putConfig: route('PUT /config', {
    tag: 'configuration',
    summary: 'Replace the whole configuration',
    description: 'Admin keys stay unchanged if the document has no `admin_keys`.',
    role: 'admin',
    body: configSchema,
    readsBody: true,
    answers: { 200: changedConfigSchema },
    hasEtag: true,
    takesIfMatch: true,
  }).servedBy(async ({ context }) => {
    const { edit, warningsOf } = importEdit(await readDocument(context));
    const changed = await changeConfig(context, edit);
    const { version, config } = changed;
    const groups = config.groups.map((group) => group.name);
    return { status: 200, body: { version, groups, warnings: warningsOf(changed) }, version };
  }),

  fingerprint: route('POST /fingerprint', {
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
  }).servedBy(async ({ context, body: { key } }) => {
    const { fingerprintKey } = await currentSnapshot(context.env);
    return {
      status: 200,
      body: {
        fingerprint: await fingerprint(fingerprintKey, key),
        hash: await gatewayKeyHash(key),
      },
    };
  }),

  listAudit: route('GET /audit', {
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
  }).servedBy(async ({ context, query }) => {
    const { limit, cursor, actor, action, since, until } = query;
    const before = cursor === undefined ? undefined : Number(cursor);
    if (before !== undefined && !(Number.isSafeInteger(before) && before > 0)) {
      const message = 'expected the `next_cursor` of the previous page';
      throw invalid([{ path: 'cursor', message }]);
    }
    const { entries, next } = await directoryOf(context.env).auditPage({
      limit,
      ...(before === undefined ? {} : { before }),
      ...(actor === undefined ? {} : { actor }),
      ...(action === undefined ? {} : { action }),
      ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
      ...(until === undefined ? {} : { until: new Date(until).toISOString() }),
    });
    return {
      status: 200,
      body: { entries, next_cursor: next === null ? null : String(next) },
    };
  }),
};

function wantsYaml(context: AdminContext): boolean {
  const isYaml = (type: string): boolean => type.includes('yaml');
  return prefersType(context.req.header('accept'), isYaml, 'application/json');
}

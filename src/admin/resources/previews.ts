import * as z from 'zod';
import { reported, rollbackSchema, rollbackTarget } from './versions.ts';
import { groupEdit, patching, putting, requireGroup } from './groups.ts';
import { groupParams, mergePatchSchema } from '../shapes.ts';
import { check, readDocument, route } from '../route.ts';
import { importEdit, tryEdit } from '../change.ts';
import type { AdminContext } from '../context.ts';
import {
  effectOf,
  effectSchema,
  effectsOf,
  lastHourSchema,
  planned,
  plannedSchema,
} from '../change-preview.ts';
import { resolveUpstreams } from '../../routing/upstreams.ts';
import { meeting, replacedBy } from '../../routing/overlaps.ts';
import { BUILT_IN_UPSTREAMS } from '../../providers/catalog.ts';
import { readDirectory } from '../../overview/pools.ts';
import { AUTO_PREFIX } from '../../contract/pool-name.ts';
import { groupSchema } from '../../contract/config/group.ts';
import { type Config, type GroupConfig, configSchema } from '../../contract/config/config.ts';

export const groupPreviewSchema = plannedSchema.extend({
  group: groupSchema,
  now: effectSchema
    .nullable()
    .describe('Immediate effect over all pools. null if the group does not exist yet.'),
  last_hour: lastHourSchema
    .nullable()
    .describe('The last hour, compared with the new limit. null if the group does not exist yet.'),
  overlaps_with: z
    .object({
      from: z.array(z.string()).describe('Overlapping groups now.'),
      to: z.array(z.string()).describe('Overlapping groups after the change.'),
    })
    .describe('Groups that may match the same calls. Such calls take slots in both groups.'),
  takes_from: z
    .array(z.string())
    .describe(
      'Automatic groups whose calls may move to this group, as far as patterns and the list of pools show.',
    ),
});

/** A field of an undone change that was changed again since. */
const conflictSchema = z.object({
  path: z
    .string()
    .describe('Path of the field, such as `groups[openai-shared].limits.max_concurrency`.'),
  was: z.unknown().optional().describe('Value before the undone change. Absent if there was none.'),
  now: z.unknown().optional().describe('Current value. Absent if there is none.'),
});

const groupEffectSchema = z.object({
  group: z.string().describe('Name of the group.'),
  now: effectSchema.describe('Immediate effect over all pools.'),
  last_hour: lastHourSchema.describe('The last hour, compared with the new limit.'),
});

export const PREVIEW_ROUTES = {
  previewConfig: route('POST /config/preview', {
    tag: 'configuration',
    summary: 'Preview a change of the configuration',
    description:
      'The body is that of `PUT /config`. With `as=rollback`, it is that of `POST /config/rollback`.',
    role: 'admin',
    query: z.strictObject({
      as: z
        .enum(['put', 'rollback'])
        .default('put')
        .describe('Whether the body is a configuration or a rollback.'),
    }),
    body: z.union([configSchema, rollbackSchema]),
    readsBody: true,
    answers: {
      200: plannedSchema.extend({
        groups: z.array(z.string()).describe('Names of all groups after the change.'),
        conflicts: z
          .array(conflictSchema)
          .describe('Fields of an undone change that were changed again since.'),
        effects: z
          .array(groupEffectSchema)
          .describe(
            'Effect of a rollback on each group that it changes, at most ten. Empty for a configuration.',
          ),
      }),
    },
    hasEtag: true,
  }).servedBy(async ({ context, query }) => {
    const document = await readDocument(context);
    const { changed, warnings, conflicts, effects } =
      query.as === 'rollback'
        ? await tryRollback(context, check(rollbackSchema, document))
        : await tryImport(context, document);
    const groups = changed.config.groups.map((group) => group.name);
    const body = { ...planned(changed), groups, warnings, conflicts: [...conflicts], effects };
    return { status: 200, body, version: changed.version };
  }),

  previewGroup: route('POST /groups/{name}/preview', {
    tag: 'groups',
    summary: 'Preview a change of a group',
    description:
      'The body is that of `PUT /groups/{name}`, or with `as=patch` that of `PATCH`. Errors are the same as there.',
    role: 'viewer',
    params: groupParams,
    query: z.strictObject({
      as: z
        .enum(['put', 'patch'])
        .default('put')
        .describe('Whether the body is that of `PUT` or that of `PATCH`.'),
    }),
    body: mergePatchSchema,
    answers: { 200: groupPreviewSchema },
    hasEtag: true,
    problems: [404],
  }).servedBy(async ({ context, params: { name }, query, body: document }) => {
    const edited = query.as === 'put' ? putting(name, document) : patching(name, document);
    const changed = await tryEdit(context, groupEdit(name, 'preview', edited));
    const { before, config } = changed;
    const { pools } = await readDirectory(context.env);
    const was = before.groups.find((group) => group.name === name);
    const group = requireGroup(config, name);
    const automatic = pools
      .map((pool) => pool.group)
      .filter((each) => each.startsWith(AUTO_PREFIX));
    const body = {
      ...planned(changed),
      group,
      ...(was === undefined
        ? { now: null, last_hour: null }
        : await effectOf(context, changed, pools, was, group)),
      overlaps_with: { from: meeting(before, name), to: meeting(config, name) },
      takes_from: newlyReplaced(was, group, [...new Set(automatic)], config),
    };
    return { status: 200, body, version: changed.version };
  }),
};

async function tryImport(context: AdminContext, document: unknown) {
  const { edit, warningsOf } = importEdit(document);
  const changed = await tryEdit(context, edit);
  return { changed, warnings: warningsOf(changed), conflicts: [], effects: [] };
}

async function tryRollback(context: AdminContext, request: z.output<typeof rollbackSchema>) {
  const { edit, outcome } = await rollbackTarget(context.env, request, true);
  const changed = await tryEdit(context, edit);
  // A preview lists conflicts in a separate field.
  const warnings = reported({ ...outcome(), conflicts: [] }, changed.warnings, false);
  const effects = await effectsOf(context, changed);
  return { changed, warnings, conflicts: outcome().conflicts, effects };
}

function newlyReplaced(
  was: GroupConfig | undefined,
  group: GroupConfig,
  automatic: readonly string[],
  config: Config,
): string[] {
  const upstreams = resolveUpstreams(config, BUILT_IN_UPSTREAMS);
  const before = was === undefined ? [] : replacedBy(was, automatic, upstreams);
  return replacedBy(group, automatic, upstreams).filter((name) => !before.includes(name));
}

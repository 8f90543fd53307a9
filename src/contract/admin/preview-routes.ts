import * as z from 'zod';
import { configSchema } from '../config/config.ts';
import { groupSchema } from '../config/group.ts';
import { foreignSchemas } from '../config/foreign-schemas.ts';
import { auditChangeSchema } from '../audit.ts';
import { mergePatchSchema } from './group-routes.ts';
import { keyParams } from './key-routes.ts';
import { routes } from './route.ts';
import { unreachableSchema } from './status-schemas.ts';
import { teamDocumentSchema, teamParams } from './team-routes.ts';
import { rollbackSchema } from './version-routes.ts';

const count = z.int().min(0);
const slots = z.number().min(0).nullable();
const ms = z.number().min(0).nullable();

/** The fields that a change would change, as the audit log would tell them. */
const plannedSchema = z.object({
  version: z.int().min(0).describe('The version that the change was compared to.'),
  changes: z.array(auditChangeSchema).describe('The fields that would change.'),
  changes_omitted: count.describe('Changes beyond those that are shown.'),
  warnings: z.array(z.string()).describe('Sentences on what may not be expected of the change.'),
  refuses: z
    .object({
      calls: count.meta({ description: 'All calls of the last hour.', unit: 'calls' }),
      is_part: z
        .boolean()
        .describe('Some pools were not asked or did not answer: there may be more calls.'),
      refused: z
        .array(
          z.object({
            reason: z.string().describe('The reason, as in `headgate-reason`.'),
            group: z
              .string()
              .nullable()
              .describe(
                'The group, key (`key:…`) or team (`team:…`) whose budget it is. Null: none.',
              ),
            calls: count.meta({ description: 'Calls that it would refuse.', unit: 'calls' }),
            of: z
              .array(
                z.object({
                  key: z
                    .string()
                    .describe('Id of the gateway key, or the fingerprint of the provider key.'),
                  upstream: z.string().describe('The upstream.'),
                  model: z.string().nullable().describe('The model. Null: not known.'),
                  calls: count.meta({ description: 'Such calls.', unit: 'calls' }),
                }),
              )
              .describe('Their keys and models, 20 at the most, those with the most calls first.'),
          }),
        )
        .describe('The calls by the reason for which they would be refused.'),
    })
    .describe(
      'Calls like those of the last hour that pass today and that the change would refuse.',
    ),
});

/** Effect of a change of a group at this moment. Figures of a split group are those of all its pools. */
const effectSchema = z.object({
  slots: z
    .object({
      from: slots.meta({ description: 'Slots now. Null: any number.', unit: 'slots' }),
      to: slots.meta({ description: 'Slots after the change. Null: any number.', unit: 'slots' }),
    })
    .describe('Slots of one pool, with what was learned; the fewest where pools differ.'),
  slots_gained: z.number().nullable().meta({
    description: 'Over all pools; below 0: lost. Null: any number, before or after.',
    unit: 'slots',
  }),
  in_use: count.meta({ description: 'Slots that calls hold.', unit: 'slots' }),
  in_use_above: count.meta({
    description: 'Slots in use that the limit would have no room for. Calls go on to their end.',
    unit: 'slots',
  }),
  members: z
    .array(
      z.object({
        member: z.string().describe('Id of the member.'),
        slots: z
          .object({
            from: slots.meta({ description: 'Slots now. Null: any number.', unit: 'slots' }),
            to: slots.meta({ description: 'Slots then. Null: any number.', unit: 'slots' }),
          })
          .describe(
            'Its slots in one pool, with what was learned; the fewest where pools differ. 0: it is not there, switched off or out.',
          ),
        in_use: count.meta({ description: 'Slots that calls hold there.', unit: 'slots' }),
      }),
    )
    .describe('Members of the group before or after the change. Calls there go on to their end.'),
  queued: count.meta({ description: 'Calls that wait.', unit: 'calls' }),
  granted_at_once: count.nullable().meta({
    description:
      'Waiters that would be granted at once. Null: all are routed again first, and join the queue anew.',
    unit: 'calls',
  }),
  refused_at_once: count.meta({
    description:
      'Waiters that would be refused, because they want more slots than one call may take.',
    unit: 'calls',
  }),
  is_rerouted: z
    .boolean()
    .describe(
      'Calls may take another way than before: everybody who waits, in any group, is routed again.',
    ),
  unreachable: unreachableSchema,
});

/** The hour before, beside the limit that would hold. */
const lastHourSchema = z.object({
  in_use_max: z.number().min(0).meta({
    description: 'The most slots in use at once in one pool.',
    unit: 'slots',
  }),
  queued_max: z.number().min(0).meta({
    description: 'The most calls that waited at once in one pool.',
    unit: 'calls',
  }),
  minutes_above: count.meta({
    description: 'Minutes in which some pool had more in use than the limit would allow.',
    unit: 'minutes',
  }),
  granted: count.meta({ description: 'Calls that were granted.', unit: 'calls' }),
  wait_p50_ms: ms.meta({ description: 'Their median wait. Null: there were none.', unit: 'ms' }),
  wait_p95_ms: ms.meta({
    description: '95th percentile of their waits. Null: there were none.',
    unit: 'ms',
  }),
});

export const groupPreviewSchema = plannedSchema.extend({
  group: groupSchema,
  now: effectSchema
    .nullable()
    .describe('Effect at this moment, over all pools. Null: there is no such group yet.'),
  last_hour: lastHourSchema
    .nullable()
    .describe('The hour before, beside the limit that would hold. Null: there is no such group.'),
  overlaps_with: z
    .object({
      from: z.array(z.string()).describe('Such groups now.'),
      to: z.array(z.string()).describe('Such groups after the change.'),
    })
    .describe('Groups that the same calls may belong to, which take slots in both.'),
  takes_from: z
    .array(z.string())
    .describe(
      'Automatic groups whose calls may go here from then on, as far as patterns and the list of pools tell.',
    ),
});

/** A field of an undone change that somebody changed since. */
const conflictSchema = z.object({
  path: z.string().describe('The field, as in `groups[openai-shared].limits.max_concurrency`.'),
  was: z
    .unknown()
    .optional()
    .describe('The value before the change that is undone. Absent: there was nothing.'),
  now: z.unknown().optional().describe('The value now. Absent: there is nothing.'),
});

const changedGroupSchema = z.object({
  group: z.string().describe('The group.'),
  now: effectSchema.describe('Effect at this moment, over all pools.'),
  last_hour: lastHourSchema.describe('The hour before, beside the limit that would hold.'),
});

/** Previews of changes, which change nothing. */
export const PREVIEW_ROUTES = routes({
  previewConfig: {
    tag: 'configuration',
    summary: 'What `PUT /config` with this body would change, without changing it',
    description: 'With `as=rollback` the body is what `POST /config/rollback` takes.',
    role: 'admin',
    query: z.strictObject({
      as: z
        .enum(['put', 'rollback'])
        .default('put')
        .describe('Whether the body is a configuration, or a way back.'),
    }),
    body: z.union([configSchema, ...foreignSchemas, rollbackSchema]),
    readsBody: true,
    answers: {
      200: plannedSchema.extend({
        groups: z.array(z.string()).describe('Names of the groups that there would be.'),
        conflicts: z
          .array(conflictSchema)
          .describe('Fields of an undone change that were changed since. Empty: none was.'),
        effects: z
          .array(changedGroupSchema)
          .describe(
            'What a way back would do to each group that it changes, of ten at the most. Empty: of a configuration it is not told.',
          ),
      }),
    },
    hasEtag: true,
  },
  previewGroup: {
    tag: 'groups',
    summary: 'What a change of a group would change and do, without making it',
    description:
      'The body is what `PUT` takes, or with `as=patch` what `PATCH` takes. Errors are theirs too.',
    role: 'viewer',
    params: z.strictObject({
      name: z.string().min(1).max(300).describe('Name of the group, encoded.'),
    }),
    query: z.strictObject({
      as: z
        .enum(['put', 'patch'])
        .default('put')
        .describe('Whether the body is what `PUT` takes, or what `PATCH` takes.'),
    }),
    body: mergePatchSchema,
    answers: { 200: groupPreviewSchema },
    hasEtag: true,
    problems: [404],
  },
  previewKey: {
    tag: 'keys',
    summary: 'What making, changing or revoking a key would change, without doing it',
    description:
      'The body is what `PATCH /keys/{id}` takes. If there is no such key, it is what `POST /keys` takes. With `as=revoke` it is not read.',
    role: 'admin',
    params: keyParams,
    query: z.strictObject({
      as: z
        .enum(['patch', 'revoke'])
        .default('patch')
        .describe(
          'Whether the key is made or changed, or opens nothing from then on: revoked, deleted, or rotated without a grace period.',
        ),
    }),
    body: mergePatchSchema,
    isBodyOptional: true,
    answers: { 200: plannedSchema },
    hasEtag: true,
  },
  previewTeam: {
    tag: 'keys',
    summary: 'What `PUT /teams/{id}` with this body would change, without changing it',
    role: 'admin',
    params: teamParams,
    body: teamDocumentSchema,
    answers: { 200: plannedSchema },
    hasEtag: true,
  },
});

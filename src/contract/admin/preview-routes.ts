import * as z from 'zod';
import { configSchema } from '../config/config.ts';
import { groupSchema } from '../config/group.ts';
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

/** The fields that a change would change, as in the audit log. */
const plannedSchema = z.object({
  version: z.int().min(0).describe('Version to which the change was compared.'),
  changes: z.array(auditChangeSchema).describe('Fields that would change.'),
  changes_omitted: count.describe('Number of changes that are not shown.'),
  warnings: z
    .array(z.string())
    .describe('Consequences of the change that you may not expect, one sentence each.'),
  refuses: z
    .object({
      calls: count.meta({ description: 'Number of all calls of the last hour.', unit: 'calls' }),
      is_part: z
        .boolean()
        .describe(
          'Whether some pools were not queried or did not respond. There may then be more calls.',
        ),
      refused: z
        .array(
          z.object({
            reason: z.string().describe('Reason, as in `headgate-reason`.'),
            group: z
              .string()
              .nullable()
              .describe(
                'Group, key (`key:…`) or team (`team:…`) of the budget. null if there is none.',
              ),
            calls: count.meta({
              description: 'Number of calls that would be rejected.',
              unit: 'calls',
            }),
            of: z
              .array(
                z.object({
                  key: z
                    .string()
                    .describe('Id of the gateway key, or fingerprint of the provider key.'),
                  upstream: z.string().describe('Upstream of the calls.'),
                  model: z.string().nullable().describe('Model. null if it is unknown.'),
                  calls: count.meta({ description: 'Number of these calls.', unit: 'calls' }),
                }),
              )
              .describe('Their keys and models, at most 20, those with the most calls first.'),
          }),
        )
        .describe('Calls by the reason for which they would be rejected.'),
    })
    .describe('Calls of the last hour that are allowed now, and that the change would reject.'),
});

/** Immediate effect of a change of a group. Figures of a split group cover all its pools. */
const effectSchema = z.object({
  slots: z
    .object({
      from: slots.meta({ description: 'Slots now. null means unlimited.', unit: 'slots' }),
      to: slots.meta({
        description: 'Slots after the change. null means unlimited.',
        unit: 'slots',
      }),
    })
    .describe('Slots of one pool, including what was learned. The lowest value if pools differ.'),
  slots_gained: z.number().nullable().meta({
    description:
      'Slots gained over all pools. Negative if slots are lost. null if unlimited before or after.',
    unit: 'slots',
  }),
  in_use: count.meta({ description: 'Slots that calls hold.', unit: 'slots' }),
  in_use_above: count.meta({
    description: 'Slots in use above the new limit. Their calls finish.',
    unit: 'slots',
  }),
  members: z
    .array(
      z.object({
        member: z.string().describe('Id of the member.'),
        slots: z
          .object({
            from: slots.meta({ description: 'Slots now. null means unlimited.', unit: 'slots' }),
            to: slots.meta({
              description: 'Slots after the change. null means unlimited.',
              unit: 'slots',
            }),
          })
          .describe(
            'Slots of the member in one pool, including what was learned. The lowest value if pools differ. 0 if the member does not exist, is disabled or is ejected.',
          ),
        in_use: count.meta({ description: 'Slots that calls hold there.', unit: 'slots' }),
      }),
    )
    .describe('Members of the group before or after the change. Their calls finish.'),
  queued: count.meta({ description: 'Number of queued calls.', unit: 'calls' }),
  granted_at_once: count.nullable().meta({
    description:
      'Queued calls that would start immediately. null if all of them are routed again first.',
    unit: 'calls',
  }),
  refused_at_once: count.meta({
    description:
      'Queued calls that would be rejected, because they need more slots than one call may take.',
    unit: 'calls',
  }),
  is_rerouted: z
    .boolean()
    .describe(
      'Whether calls may belong to other groups than before. All queued calls, in all groups, are routed again.',
    ),
  unreachable: unreachableSchema,
});

/** The last hour, compared with the new limit. */
const lastHourSchema = z.object({
  in_use_max: z.number().min(0).meta({
    description: 'Maximum slots in use in one pool.',
    unit: 'slots',
  }),
  queued_max: z.number().min(0).meta({
    description: 'Maximum queue length of one pool.',
    unit: 'calls',
  }),
  minutes_above: count.meta({
    description: 'Minutes in which a pool had more slots in use than the new limit allows.',
    unit: 'minutes',
  }),
  granted: count.meta({ description: 'Number of granted calls.', unit: 'calls' }),
  wait_p50_ms: ms.meta({
    description: 'Median wait of the granted calls. null if there were none.',
    unit: 'ms',
  }),
  wait_p95_ms: ms.meta({
    description: '95th percentile of those waits. null if there were none.',
    unit: 'ms',
  }),
});

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

const changedGroupSchema = z.object({
  group: z.string().describe('Name of the group.'),
  now: effectSchema.describe('Immediate effect over all pools.'),
  last_hour: lastHourSchema.describe('The last hour, compared with the new limit.'),
});

export const PREVIEW_ROUTES = routes({
  previewConfig: {
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
          .array(changedGroupSchema)
          .describe(
            'Effect of a rollback on each group that it changes, at most ten. Empty for a configuration.',
          ),
      }),
    },
    hasEtag: true,
  },
  previewGroup: {
    tag: 'groups',
    summary: 'Preview a change of a group',
    description:
      'The body is that of `PUT /groups/{name}`, or with `as=patch` that of `PATCH`. Errors are the same as there.',
    role: 'viewer',
    params: z.strictObject({
      name: z.string().min(1).max(300).describe('URL-encoded name of the group.'),
    }),
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
  },
  previewKey: {
    tag: 'keys',
    summary: 'Preview the creation, change or revocation of a gateway key',
    description:
      'The body is that of `PATCH /keys/{id}`. If there is no such key, it is that of `POST /keys`. With `as=revoke`, it is ignored.',
    role: 'admin',
    params: keyParams,
    query: z.strictObject({
      as: z
        .enum(['patch', 'revoke'])
        .default('patch')
        .describe(
          '`patch`: create or change the key. `revoke`: make it invalid, by revoking or deleting it, or by rotating it without a grace period.',
        ),
    }),
    body: mergePatchSchema,
    isBodyOptional: true,
    answers: { 200: plannedSchema },
    hasEtag: true,
  },
  previewTeam: {
    tag: 'keys',
    summary: 'Preview a change of a team',
    role: 'admin',
    params: teamParams,
    body: teamDocumentSchema,
    answers: { 200: plannedSchema },
    hasEtag: true,
  },
});

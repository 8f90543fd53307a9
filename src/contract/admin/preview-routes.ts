import * as z from 'zod';
import { configSchema, groupSchema } from '../config/config.ts';
import { foreignSchemas } from '../config/foreign-schemas.ts';
import { auditChangeSchema } from '../audit.ts';
import { mergePatchSchema } from './group-routes.ts';
import { routes } from './route.ts';
import { unreachableSchema } from './status-schemas.ts';

const count = z.int().min(0);
const slots = z.number().min(0).nullable();
const ms = z.number().min(0).nullable();

/** What a change would change, as the audit log would tell it. */
const plannedSchema = z.object({
  /** The version that the change was compared to. */
  version: z.int().min(0),
  changes: z.array(auditChangeSchema),
  /** Changes beyond those that are shown. */
  changes_omitted: count,
  warnings: z.array(z.string()),
});

/** What a change of a group would do at this moment. Figures of a split group are those of all its pools. */
const effectSchema = z.object({
  /** Slots of one pool, with what was learned; the fewest where pools differ. Null: any number. */
  slots: z.object({ from: slots, to: slots }),
  /** Over all pools; less than 0: lost. Null: any number, before or after. */
  slots_gained: z.number().nullable(),
  in_use: count,
  /** Calls in flight that the limit would have no room for. They go on to their end. */
  in_use_above: count,
  queued: count,
  /** Waiters that would be granted at once. Null: all are routed again first, and join the queue anew. */
  granted_at_once: count.nullable(),
  /** Waiters that would be refused, because they want more slots than one call may take. */
  refused_at_once: count,
  /** Calls may take another way than before, so that everybody who waits, in any group, is routed again. */
  is_rerouted: z.boolean(),
  /** Pools that did not answer. */
  unreachable: unreachableSchema,
});

/** The hour before, beside the limit that would hold. */
const lastHourSchema = z.object({
  /** In one pool. */
  in_use_max: z.number().min(0),
  queued_max: z.number().min(0),
  /** Minutes in which some pool had more in use than the limit would allow. */
  minutes_above: count,
  granted: count,
  wait_p50_ms: ms,
  wait_p95_ms: ms,
});

export const groupPreviewSchema = plannedSchema.extend({
  /** The group as it would be. */
  group: groupSchema,
  /** Null: there is no such group yet. */
  now: effectSchema.nullable(),
  last_hour: lastHourSchema.nullable(),
  /** Groups that the same calls may belong to, which take slots in both; now, and then. */
  overlaps_with: z.object({ from: z.array(z.string()), to: z.array(z.string()) }),
  /** Automatic groups whose calls may go here from then on, as far as patterns and the list of pools tell. */
  takes_from: z.array(z.string()),
});

/** What a change would change, and do, without making it. */
export const PREVIEW_ROUTES = routes({
  previewConfig: {
    method: 'POST',
    path: '/config/preview',
    tag: 'configuration',
    summary: 'What `PUT /config` with this body would change, without changing it',
    role: 'admin',
    body: z.union([configSchema, ...foreignSchemas]),
    readsBody: true,
    answers: { 200: plannedSchema.extend({ groups: z.array(z.string()) }) },
    hasEtag: true,
  },
  previewGroup: {
    method: 'POST',
    path: '/groups/{name}/preview',
    tag: 'groups',
    summary: 'What a change of a group would change and do, without making it',
    description:
      'The body is what `PUT` takes, or with `as=patch` what `PATCH` takes. Errors are theirs too.',
    role: 'viewer',
    params: z.strictObject({ name: z.string().min(1).max(300) }),
    query: z.strictObject({ as: z.enum(['put', 'patch']).default('put') }),
    body: mergePatchSchema,
    answers: { 200: groupPreviewSchema },
    hasEtag: true,
    problems: [404],
  },
});

import * as z from 'zod';
import { auditEntrySchema } from '../audit.ts';
import { ADMIN_ROLES, gatewayKeySchema } from '../config/keys.ts';
import { autoGroupSchema, groupSchema } from '../config/group.ts';
import { upstreamSchema } from '../config/upstream-config.ts';
import { DIALECTS } from '../dialect.ts';
import { limitsSeenSchema, upstreamCallsSchema } from '../status.ts';
import { suggestionSchema } from './suggestion-schemas.ts';
import { stoppedSchema } from './status-schemas.ts';
import { LANES } from '../../core/words/ticket.ts';

const version = z.int().min(0).describe('Version of the configuration.');
const at = z.iso.datetime();
const warnings = z
  .array(z.string())
  .describe('Consequences of the change that you may not expect, one sentence each.');
const secret = z.string().describe('The key itself. It is shown only once.');

/** A problem as in RFC 9457. */
export const problemSchema = z.object({
  type: z.string().describe('Kind of the problem: `about:blank`.'),
  title: z.string().describe('Short title of the problem.'),
  status: z.int().describe('HTTP status.'),
  detail: z.string().describe('Description of the problem.'),
  errors: z
    .array(
      z.object({
        path: z.string().describe('Path of the field, such as `limits.max_concurrency`.'),
        message: z.string().describe('What is wrong with its value.'),
      }),
    )
    .max(50)
    .optional()
    .describe('The first 50 invalid fields. Absent if the problem is not about fields.'),
  more: z.int().min(0).optional().describe('Number of further invalid fields.'),
  command: z
    .string()
    .optional()
    .describe(
      'Command that fixes the problem, for the environment of this Headgate. Absent if there is none.',
    ),
  afterwards: z.string().optional().describe('What to do after the command, for people.'),
  fault: z
    .string()
    .optional()
    .describe('What is wrong with the secret that the command sets, such as "is not set".'),
});

/** One page of a list. The next one is requested by sending `next_cursor` as `cursor`. */
export function pageOf<Name extends string, Item extends z.ZodType>(name: Name, item: Item) {
  const rest = {
    version,
    next_cursor: z
      .string()
      .nullable()
      .describe('Send it as `cursor` to get the next page. null on the last page.'),
  };
  const list = z.array(item).describe('Items of this page.');
  return z.object({ [name]: list, ...rest } as Record<Name, z.ZodArray<Item>> & typeof rest);
}

/** Response to a change, also if nothing had to change. */
export const changedSchema = z.object({ version, warnings });

export const changedGroupSchema = changedSchema.extend({ group: groupSchema });
/** For an automatic group without an entry, these are all settings. */
export const switchedGroupSchema = changedSchema.extend({
  group: z.union([groupSchema, autoGroupSchema]).describe('The group after the change.'),
});
export const changedUpstreamSchema = changedSchema.extend({ upstream: upstreamSchema });
export const changedConfigSchema = changedSchema.extend({
  groups: z.array(z.string()).describe('Names of all groups.'),
});

const keyFields = gatewayKeySchema.omit({ hash: true, previous: true });

/** A gateway key without its hashes. */
export const keySchema = z
  .object({
    ...keyFields.shape,
    state: z.enum(['active', 'expired', 'revoked']).describe('Whether the key is valid now.'),
    previous_expires_at: at
      .nullable()
      .describe('Time at which the key before the last rotation expires. null if there is none.'),
  })
  .describe('A gateway key, without its hash.');

export const changedKeySchema = changedSchema.extend({ key: keySchema });
/** The only responses that contain a key. */
export const newKeySchema = changedKeySchema.extend({ secret });
export const revokedKeySchema = changedKeySchema.extend({
  waiters_cancelled: z
    .int()
    .min(0)
    .describe('Number of queued calls of the key that were removed from their queues.'),
});

export const adminKeyInfoSchema = z
  .object({
    id: z.string().describe('Name of its holder in the audit log.'),
    role: z.enum(ADMIN_ROLES).describe('Role of its holder.'),
    created_at: at.nullable().describe('Time of creation. null if it is unknown.'),
    expires_at: at.nullable().describe('Time at which it expires. null if it never expires.'),
    state: z.enum(['active', 'expired']).describe('Whether the key is valid now.'),
  })
  .describe('A key of the admin API, without its hash.');
export const newAdminKeySchema = changedSchema.extend({ admin_key: adminKeyInfoSchema, secret });

const secretSchema = z.object({
  name: z.string().describe('Name of the secret.'),
  is_set: z
    .boolean()
    .describe('Whether the secret is usable. A secret with white space inside is not.'),
  fault: z
    .string()
    .nullable()
    .describe('Why it is unusable, such as "is not set". null if it is usable.'),
  set_with: z.string().describe('How to set it in the environment of this Headgate, for people.'),
  command: z.string().describe('Command that sets it in the environment of this Headgate.'),
  afterwards: z.string().describe('What to do after the command, for people.'),
});

/** An upstream with all defaults, and with the state of its calls. */
export const upstreamInfoSchema = z.object({
  id: z.string().describe('Id of the upstream.'),
  is_built_in: z.boolean().describe('Whether the upstream is built in.'),
  enabled: z.boolean().describe('Whether calls can use it.'),
  base_url: z.string().nullable().describe('Base URL. null if it is unknown.'),
  dialect: z.enum(DIALECTS).nullable().describe('API shape. null if it is unknown.'),
  models: z.array(z.string()).describe('Patterns of the models that `/v1/*` sends there.'),
  openai_at: z
    .string()
    .nullable()
    .describe('Where its OpenAI-shaped routes begin. null if there are none.'),
  anthropic_at: z
    .string()
    .nullable()
    .describe('Where its Anthropic-shaped routes begin. null if there are none.'),
  via: z
    .string()
    .nullable()
    .describe('Binding that carries the calls. null means the public network.'),
  secret: secretSchema
    .nullable()
    .describe("Secret with the operator's key. null means that the caller's key is forwarded."),
  member_secrets: z
    .array(secretSchema)
    .describe('Secrets of group members at this upstream, without duplicates.'),
  configured: upstreamSchema
    .nullable()
    .describe('Entry in the configuration. null if there is none.'),
  groups: z
    .array(z.string())
    .describe(
      'Groups whose calls went there, and groups that name it. A group that matches only by models is listed once it has called the upstream.',
    ),
  calls: upstreamCallsSchema
    .omit({ id: true })
    .nullable()
    .describe(
      'Calls to the upstream. A call with slots in several groups counts in each. null if there were none.',
    ),
  health: z
    .object({
      state: z
        .enum(['ok', 'partly paused', 'waiting', 'open', 'unreachable', 'unknown'])
        .describe(
          '`ok`: calls start as usual. `partly paused`: the upstream refuses only the calls in `stopped`. `waiting`: all calls are paused until `paused_until`. `open`: a breaker is not closed. `unreachable`: no pool responds. `unknown`: there were no calls yet.',
        ),
      paused_until: at
        .nullable()
        .describe('Time at which its backoff ends. null if there is none.'),
      breaker_until: at
        .nullable()
        .describe('Time at which the breaker admits the first probe. null if it is not open.'),
      stopped: stoppedSchema,
      refusals_total: z
        .record(z.string(), z.number())
        .describe('Refusals in the current UTC day, by kind.'),
      limits: z.record(z.string(), z.number().nullable()).meta({
        description:
          'Effective limits by group, for groups that have called it. null means unlimited.',
        unit: 'slots',
      }),
    })
    .describe('Combined observations of the groups whose calls went there.'),
});

export const upstreamDetailSchema = upstreamInfoSchema.extend({
  suggested_limits: z
    .array(suggestionSchema)
    .describe(
      'Limits that the provider publishes for its plans. Headgate does not know which plan you have.',
    ),
  seen_limits: z
    .array(limitsSeenSchema.extend({ group: z.string().describe('Group of these calls.') }))
    .describe('Limits that it reported in response headers.'),
});

export const auditPageSchema = z.object({
  entries: z.array(auditEntrySchema).describe('Entries, the newest first.'),
  next_cursor: z
    .string()
    .nullable()
    .describe('Send it as `cursor` to get the next page. null on the last page.'),
});

export const sessionSchema = z.object({
  actor: z.string().describe('The authenticated actor, as in the audit log.'),
  role: z.enum(ADMIN_ROLES).describe('Role of the actor.'),
  via: z.enum(['token', 'session', 'access']).describe('How the request was authenticated.'),
  expires_at: at.nullable().describe('Time at which the session ends. null without a session.'),
});

const placementSchema = z.object({
  group: z.string().describe('Name of the group.'),
  kind: z.enum(['configured', 'automatic', 'key', 'team']).describe('Kind of the group.'),
  partition: z
    .string()
    .nullable()
    .describe(
      'Partition, as in the name of its pool. In a jurisdiction, each value is hashed. null if the group is not split.',
    ),
  lane: z.enum(LANES).describe('Lane that the call would have there.'),
  is_of_provider: z
    .boolean()
    .describe(
      'Whether the group matches models, upstreams or base URLs, and not only keys or operations.',
    ),
  limits: groupSchema.shape.limits
    .nullable()
    .describe('Configured limits. null for an automatic group, which has `assumed`.'),
  assumed: z
    .object({
      max_concurrency: z.int().meta({ description: 'Slots.', unit: 'slots' }),
      source: z
        .enum(['built_in', 'unknown'])
        .describe('Source: the table of known limits, or the default for all others.'),
    })
    .nullable()
    .describe('Limit of an automatic group. null if the group is configured.'),
});

export const testedSchema = z.object({
  version,
  upstream: z
    .object({
      id: z.string().describe('Id of the upstream.'),
      base_url: z.string().describe('Base URL.'),
      dialect: z.enum(DIALECTS).describe('API shape.'),
    })
    .nullable()
    .describe('Upstream of the call. null if none was found.'),
  model: z.string().nullable().describe('Model that groups match. null if there is none.'),
  chosen_by: z
    .enum(['upstream', 'model', 'default'])
    .nullable()
    .describe('How the upstream was chosen. null if none was found.'),
  operation: z
    .string()
    .nullable()
    .describe('Operation, by the path if there is one. null if no upstream was found.'),
  takes_slot: z
    .boolean()
    .nullable()
    .describe('Whether it takes slots. null if no upstream was found.'),
  credential: z
    .enum(['operator', 'caller', 'none'])
    .nullable()
    .describe(
      'Whose key the upstream would receive. `none` means that it needs no key. null if no upstream was found.',
    ),
  groups: z
    .array(placementSchema)
    .describe('Groups of the call, in the order in which their slots are acquired.'),
  refusal: z
    .object({
      reason: z.string().describe('Reason, as in `headgate-reason`.'),
      status: z.int().describe('HTTP status.'),
      message: z.string().describe('Message for people.'),
    })
    .nullable()
    .describe('Why the call would be rejected before it reaches a group. null if it would not.'),
});

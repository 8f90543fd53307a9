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

/** Answers of the admin API, but for the state and the past of groups. */

const version = z.int().min(0).describe('Version of the configuration.');
const at = z.iso.datetime();
const warnings = z
  .array(z.string())
  .describe('Sentences on what may not be expected of the change.');
const secret = z.string().describe('The key itself, shown this once.');

/** A problem by RFC 9457. */
export const problemSchema = z.object({
  type: z.string().describe('Kind of the problem: `about:blank`.'),
  title: z.string().describe('The problem in a few words.'),
  status: z.int().describe('HTTP status.'),
  detail: z.string().describe('The problem in a sentence.'),
  errors: z
    .array(
      z.object({
        path: z.string().describe('The field, as in `limits.max_concurrency`.'),
        message: z.string().describe('What was expected, and what there was.'),
      }),
    )
    .max(50)
    .optional()
    .describe('The first 50 fields that are wrong.'),
  more: z.int().min(0).optional().describe('How many more there are.'),
  command: z
    .string()
    .optional()
    .describe(
      'The line that mends it, where there is one, as it is typed where this Headgate runs.',
    ),
  afterwards: z.string().optional().describe('What is to be done after that line, for people.'),
  fault: z
    .string()
    .optional()
    .describe('What is wrong with the secret that the line sets, as in "the secret X is not set".'),
});

/** A list that goes on where `next_cursor` is sent back as `cursor`. */
export function pageOf<Name extends string, Item extends z.ZodType>(name: Name, item: Item) {
  const rest = {
    version,
    next_cursor: z
      .string()
      .nullable()
      .describe('Sent back as `cursor` for the next page. Null: that was all.'),
  };
  const list = z.array(item).describe('One page of them.');
  return z.object({ [name]: list, ...rest } as Record<Name, z.ZodArray<Item>> & typeof rest);
}

/** A change that was made, or was not needed. */
export const changedSchema = z.object({ version, warnings });

export const changedGroupSchema = changedSchema.extend({ group: groupSchema });
/** Nothing else can be set of an automatic group. */
export const switchedGroupSchema = changedSchema.extend({
  group: z.union([groupSchema, autoGroupSchema]).describe('The group as it is now.'),
});
export const changedUpstreamSchema = changedSchema.extend({ upstream: upstreamSchema });
export const changedConfigSchema = changedSchema.extend({
  groups: z.array(z.string()).describe('Names of all groups.'),
});

const keyFields = gatewayKeySchema.omit({ hash: true, previous: true });

/** A caller's key without anything that could be guessed from. */
export const keySchema = z
  .object({
    ...keyFields.shape,
    state: z.enum(['active', 'expired', 'revoked']).describe('Whether it opens anything now.'),
    previous_expires_at: at
      .nullable()
      .describe('Until when the key before the last rotation is good. Null: none is.'),
  })
  .describe('A key of a caller, without its hash.');

export const changedKeySchema = changedSchema.extend({ key: keySchema });
/** The only answer that ever holds a key. */
export const newKeySchema = changedKeySchema.extend({ secret });
export const revokedKeySchema = changedKeySchema.extend({
  waiters_cancelled: z.int().min(0).describe('Waiting calls of the key, now out of their queues.'),
});

export const adminKeyInfoSchema = z
  .object({
    id: z.string().describe('Whose it is, as the audit log says.'),
    role: z.enum(ADMIN_ROLES).describe('The role of its holder.'),
    created_at: at.nullable().describe('When it was made. Null: not known.'),
    expires_at: at.nullable().describe('From then on it opens nothing. Null: never.'),
    state: z.enum(['active', 'expired']).describe('Whether it opens anything now.'),
  })
  .describe('A key of the admin API, without its hash.');
export const newAdminKeySchema = changedSchema.extend({ admin_key: adminKeyInfoSchema, secret });

const secretSchema = z.object({
  name: z.string().describe('Name of the secret.'),
  is_set: z.boolean().describe('Whether it can be used. One with white space inside cannot.'),
  fault: z
    .string()
    .nullable()
    .describe('Why it cannot be used, as in "the secret X is not set". Null: it can be used.'),
  set_with: z.string().describe('How it is set where this Headgate runs, for people.'),
  command: z.string().describe('The line to type for that, where this Headgate runs.'),
  afterwards: z.string().describe('What is to be done after it, for people.'),
});

/** An upstream as calls find it. */
export const upstreamInfoSchema = z.object({
  id: z.string().describe('Id of the upstream.'),
  is_built_in: z.boolean().describe('Headgate knows it without an entry.'),
  enabled: z.boolean().describe('Calls can reach it.'),
  base_url: z.string().nullable().describe('Base URL. Null: not known.'),
  dialect: z.enum(DIALECTS).nullable().describe('API shape. Null: not known.'),
  models: z.array(z.string()).describe('Globs of the models that `/v1/*` sends there.'),
  openai_at: z
    .string()
    .nullable()
    .describe('Where its OpenAI-shaped routes begin. Null: it has none.'),
  anthropic_at: z
    .string()
    .nullable()
    .describe('Where its Anthropic-shaped routes begin. Null: it has none.'),
  via: z.string().nullable().describe('Binding that carries the calls. Null: the public network.'),
  secret: secretSchema
    .nullable()
    .describe('The secret with your key. Null: the key of the caller goes on.'),
  member_secrets: z
    .array(secretSchema)
    .describe('Secrets that members of groups have for it, each once.'),
  configured: upstreamSchema
    .nullable()
    .describe('The entry in the configuration. Null: there is none.'),
  groups: z
    .array(z.string())
    .describe(
      'Groups whose calls went there, and those that name it. One that matches by models alone is here only once it was called for it.',
    ),
  calls: upstreamCallsSchema
    .omit({ id: true })
    .nullable()
    .describe(
      'What went there. A call that takes slots in several groups counts in each. Null: nothing yet.',
    ),
  health: z
    .object({
      state: z
        .enum(['ok', 'partly paused', 'waiting', 'open', 'unreachable', 'unknown'])
        .describe(
          '`open`: a breaker is not closed. `waiting`: all calls are paused until `paused_until`. `partly paused`: the upstream refuses only the calls in `stopped`. `unreachable`: no pool answers. `unknown`: no calls yet.',
        ),
      paused_until: at.nullable().describe('When its backoff ends. null if there is none.'),
      breaker_until: at
        .nullable()
        .describe('When the breaker admits the first probe. null if it is not open.'),
      stopped: stoppedSchema,
      refusals_total: z
        .record(z.string(), z.number())
        .describe('Its refusals of this day of UTC, by kind.'),
      limits: z.record(z.string(), z.number().nullable()).meta({
        description: 'Effective limits, by group that was called for it. Null: any number.',
        unit: 'slots',
      }),
    })
    .describe('Sum of what the groups have seen whose calls went there.'),
});

/** An upstream with what may be said of its limits. */
export const upstreamDetailSchema = upstreamInfoSchema.extend({
  suggested_limits: z
    .array(suggestionSchema)
    .describe(
      'Limits that its provider publishes of its plans; which one is yours it does not say.',
    ),
  seen_limits: z
    .array(
      limitsSeenSchema.extend({ group: z.string().describe('The group whose calls were told.') }),
    )
    .describe('Limits that it has told in the headers of its answers.'),
});

export const auditPageSchema = z.object({
  entries: z.array(auditEntrySchema).describe('The newest first.'),
  next_cursor: z
    .string()
    .nullable()
    .describe('Sent back as `cursor` for the next page. Null: that was all.'),
});

export const sessionSchema = z.object({
  actor: z.string().describe('Who asks, as the audit log names them.'),
  role: z.enum(ADMIN_ROLES).describe('Their role.'),
  via: z.enum(['token', 'session', 'access']).describe('How they showed who they are.'),
  expires_at: at.nullable().describe('When the session ends. Null: it is none.'),
});

/** One group that a call would take slots in. */
const placementSchema = z.object({
  group: z.string().describe('The group.'),
  kind: z.enum(['configured', 'automatic', 'key', 'team']).describe('Kind of the group.'),
  partition: z
    .string()
    .nullable()
    .describe(
      'The partition, under the name that its pool has: in a jurisdiction a hash of each value. Null: the group is not split.',
    ),
  lane: z.enum(LANES).describe('The lane that the call would have there.'),
  is_of_provider: z
    .boolean()
    .describe('The group stands for models, upstreams or base URLs, not for keys or operations.'),
  limits: groupSchema.shape.limits
    .nullable()
    .describe('Its configured limits. Null: automatic, with `assumed`.'),
  assumed: z
    .object({
      max_concurrency: z.int().meta({ description: 'Slots.', unit: 'slots' }),
      source: z
        .enum(['built_in', 'unknown'])
        .describe('The table of known limits, or the default for everything else.'),
    })
    .nullable()
    .describe('The limit of an automatic group. Null: it is configured.'),
});

export const testedSchema = z.object({
  version,
  upstream: z
    .object({
      id: z.string().describe('Its id.'),
      base_url: z.string().describe('Its base URL.'),
      dialect: z.enum(DIALECTS).describe('Its API shape.'),
    })
    .nullable()
    .describe('The upstream that the call would go to. Null: none was found.'),
  model: z.string().nullable().describe('The model that groups would see. Null: none.'),
  chosen_by: z
    .enum(['upstream', 'model', 'default'])
    .nullable()
    .describe('How the upstream was chosen. Null: none was found.'),
  operation: z
    .string()
    .nullable()
    .describe('The operation, by its path where one is given. Null: no upstream was found.'),
  takes_slot: z
    .boolean()
    .nullable()
    .describe('Whether it takes slots at all. Null: no upstream was found.'),
  credential: z
    .enum(['operator', 'caller', 'none'])
    .nullable()
    .describe(
      'Whose key the upstream would see; `none`: it takes none. Null: no upstream was found.',
    ),
  groups: z
    .array(placementSchema)
    .describe('Its groups, in the order in which their slots are taken.'),
  refusal: z
    .object({
      reason: z.string().describe('The reason, as in `headgate-reason`.'),
      status: z.int().describe('HTTP status.'),
      message: z.string().describe('A sentence for people.'),
    })
    .nullable()
    .describe('Why the call would be refused before it asked any group. Null: it would not.'),
});

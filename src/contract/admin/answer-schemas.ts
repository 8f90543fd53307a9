import * as z from 'zod';
import { auditEntrySchema } from '../audit.ts';
import {
  ADMIN_ROLES,
  autoGroupSchema,
  gatewayKeySchema,
  groupSchema,
  upstreamSchema,
} from '../config/config.ts';
import { DIALECTS } from '../dialect.ts';
import { LANES } from '../../core/words/ticket.ts';

/** What the admin API answers, but for the state of groups. */

const version = z.int().min(0);
const at = z.iso.datetime();
const warnings = z.array(z.string());

/** RFC 9457. */
export const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  /** The first 50, and how many more there are. */
  errors: z
    .array(z.object({ path: z.string(), message: z.string() }))
    .max(50)
    .optional(),
  more: z.int().min(0).optional(),
});

/** A list that goes on where `next_cursor` is sent back as `cursor`. Null: that was all. */
export function pageOf<Name extends string, Item extends z.ZodType>(name: Name, item: Item) {
  const rest = { version, next_cursor: z.string().nullable() };
  return z.object({ [name]: z.array(item), ...rest } as Record<Name, z.ZodArray<Item>> &
    typeof rest);
}

/** A change that was made, or was not needed. */
export const changedSchema = z.object({ version, warnings });

export const changedGroupSchema = changedSchema.extend({ group: groupSchema });
/** Of an automatic group nothing else can be set. */
export const switchedGroupSchema = changedSchema.extend({
  group: z.union([groupSchema, autoGroupSchema]),
});
export const changedUpstreamSchema = changedSchema.extend({ upstream: upstreamSchema });
export const changedConfigSchema = changedSchema.extend({ groups: z.array(z.string()) });

const keyFields = gatewayKeySchema.omit({ hash: true, previous: true });

/** A caller's key without anything that could be guessed from. */
export const keySchema = z.object({
  ...keyFields.shape,
  state: z.enum(['active', 'expired', 'revoked']),
  /** Until when the key before the last rotation is good; null: there is none that is. */
  previous_expires_at: at.nullable(),
});

export const changedKeySchema = changedSchema.extend({ key: keySchema });
/** The only answer that ever holds a key. */
export const newKeySchema = changedKeySchema.extend({ secret: z.string() });
export const revokedKeySchema = changedKeySchema.extend({ waiters_cancelled: z.int().min(0) });

export const adminKeyInfoSchema = z.object({
  id: z.string(),
  role: z.enum(ADMIN_ROLES),
  created_at: at.nullable(),
  expires_at: at.nullable(),
  state: z.enum(['active', 'expired']),
});
export const newAdminKeySchema = changedSchema.extend({
  admin_key: adminKeyInfoSchema,
  secret: z.string(),
});

/** An upstream as calls find it. */
export const upstreamInfoSchema = z.object({
  id: z.string(),
  is_built_in: z.boolean(),
  enabled: z.boolean(),
  base_url: z.string().nullable(),
  dialect: z.enum(DIALECTS).nullable(),
  models: z.array(z.string()),
  openai_at: z.string().nullable(),
  anthropic_at: z.string().nullable(),
  via: z.string().nullable(),
  /** `set_with`: how it is set where this Headgate runs, for people. */
  secret: z.object({ name: z.string(), is_set: z.boolean(), set_with: z.string() }).nullable(),
  /** What the configuration says of it; null: nothing. */
  configured: upstreamSchema.nullable(),
  /** Groups that stand for it, as far as they have been called. */
  groups: z.array(z.string()),
  health: z.object({
    state: z.enum(['ok', 'waiting', 'open', 'unreachable', 'unknown']),
    paused_until: at.nullable(),
    breaker_until: at.nullable(),
    refusals_total: z.record(z.string(), z.number()),
    /** Effective limits of slots, by group. */
    limits: z.record(z.string(), z.number().nullable()),
  }),
});

export const auditPageSchema = z.object({
  entries: z.array(auditEntrySchema),
  next_cursor: z.string().nullable(),
});

export const sessionSchema = z.object({
  actor: z.string(),
  role: z.enum(ADMIN_ROLES),
  via: z.enum(['token', 'session', 'access']),
  /** Null: not a session. */
  expires_at: at.nullable(),
});

/** One group that a call would take slots in. */
const placementSchema = z.object({
  group: z.string(),
  kind: z.enum(['configured', 'automatic', 'key']),
  partition: z.string().nullable(),
  lane: z.enum(LANES),
  is_of_provider: z.boolean(),
  /** Null: automatic, with `assumed`. */
  limits: groupSchema.shape.limits.nullable(),
  assumed: z
    .object({ max_concurrency: z.int(), source: z.enum(['built_in', 'unknown']) })
    .nullable(),
});

export const testedSchema = z.object({
  version,
  /** Null: no upstream was found. */
  upstream: z
    .object({ id: z.string(), base_url: z.string(), dialect: z.enum(DIALECTS) })
    .nullable(),
  model: z.string().nullable(),
  /** How the upstream was chosen. */
  chosen_by: z.enum(['upstream', 'model', 'default']).nullable(),
  /** Whose key the upstream would see. */
  credential: z.enum(['operator', 'caller']).nullable(),
  /** In the order in which their slots are taken. */
  groups: z.array(placementSchema),
  /** Why the call would be refused before it asked any group; null: it would not. */
  refusal: z.object({ reason: z.string(), status: z.int(), message: z.string() }).nullable(),
});

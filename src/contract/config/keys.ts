import * as z from 'zod';
import { lane, patterns } from './group.ts';
import { limitsSchema } from './limits.ts';

const keyId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'expected 1 to 64 of a-z, 0-9, dot, dash, underscore');

const keyHash = z
  .string()
  .regex(/^sha256:[0-9a-f]{64}$/, 'expected sha256: and 64 hex digits')
  .describe('SHA-256 of the whole key: `sha256:` and 64 hex digits.');

/** An RFC 3339 time in UTC: `2026-11-20T10:00:00Z`. */
const instantText = z.iso.datetime({ error: 'expected an instant like 2026-11-20T10:00:00Z' });

const createdAt = instantText
  .nullable()
  .default(null)
  .describe('Time of creation, in UTC. null if it is unknown.');
const expiresAt = instantText
  .nullable()
  .default(null)
  .describe('Time at which it expires, in UTC. null if it never expires.');

const callerLimits = () =>
  limitsSchema
    .pick({ max_concurrency: true, rpm: true, tpm: true, rpd: true, tpd: true, budget_usd: true })
    .prefault({});

export const teamSchema = z.strictObject({
  id: keyId.describe(
    'Name of the team, as keys name it: 1 to 64 of a-z, 0-9, dot, dash, underscore.',
  ),
  note: z.string().trim().max(200).default('').describe('Note for people.'),
  limits: callerLimits().describe(
    'Limits over all calls of all keys of the team. Limits of each key apply in addition.',
  ),
});

export const gatewayKeySchema = z.strictObject({
  id: keyId.describe(
    'Name of the key: 1 to 64 of a-z, 0-9, dot, dash, underscore. It cannot be changed later.',
  ),
  hash: keyHash,
  note: z.string().trim().max(200).default('').describe('Note for people.'),
  groups: patterns.describe(
    'Patterns of the groups that its calls may use. Calls to other groups are rejected with `key_forbidden`. If empty: all groups.',
  ),
  allow: patterns.describe(
    'Patterns of additional rights. `lease`: acquire leases. `lease_usage`: charge the usage that its leases report, not their reservation. Names of operations without a slot (files, batches …): use them with your secrets. Listing models and counting tokens are always allowed.',
  ),
  lane_default: lane
    .nullable()
    .default(null)
    .describe('Lane of its calls that name none. null means that of the group.'),
  lane_max: lane
    .default('normal')
    .describe(
      'Highest lane that its calls may have. With `high`, its callers can overtake all others with `headgate-lane: high`.',
    ),
  timeout_ms: z.int().min(0).max(3_600_000).nullable().default(null).meta({
    description:
      'How long its calls may wait in every group and lane. It replaces their time-outs, and may be longer. null means the time-outs of groups and lanes.',
    unit: 'ms',
  }),
  weight: z.number().min(0.01).max(1_000).default(1).meta({
    description: 'Its weight in every group that sets none for it.',
    unit: 'parts',
  }),
  team: keyId
    .nullable()
    .default(null)
    .describe(
      'Team that its calls are charged to. `teams` may give this name limits. null if there is none.',
    ),
  limits: callerLimits().describe('Limits over all calls of this key.'),
  created_at: createdAt,
  expires_at: expiresAt,
  revoked_at: instantText
    .nullable()
    .default(null)
    .describe('Time at which it was revoked, in UTC. null if it was not.'),
  previous: z
    .strictObject({
      hash: keyHash,
      expires_at: instantText.describe('Time at which it expires, in UTC.'),
    })
    .nullable()
    .default(null)
    .describe(
      'The key before the last rotation, which stays valid until `expires_at`. null if there is none.',
    ),
});

/** Roles of the admin API, least first. Each role includes the roles before it. */
export const ADMIN_ROLES = ['viewer', 'operator', 'admin'] as const;

export type AdminRole = (typeof ADMIN_ROLES)[number];

/** Actor in the audit log for `ADMIN_TOKEN`. */
export const TOKEN_ACTOR = 'admin-token';

export const adminKeySchema = z.strictObject({
  id: keyId.describe(
    'Name of the holder in the audit log: 1 to 64 of a-z, 0-9, dot, dash, underscore.',
  ),
  hash: keyHash,
  role: z
    .enum(ADMIN_ROLES)
    .describe(
      '`viewer` can read. `operator` can also act on calls and pause groups. `admin` can change everything.',
    ),
  created_at: createdAt,
  expires_at: expiresAt,
});

/** The part of a gateway key that operators write. Headgate sets the rest. */
export const keyDocumentSchema = gatewayKeySchema
  .omit({ hash: true, created_at: true, revoked_at: true, previous: true })
  .describe('A gateway key. Omitted fields have their defaults.');

/** The part of an admin key that operators write. */
export const adminKeyDocumentSchema = adminKeySchema.omit({ hash: true, created_at: true });

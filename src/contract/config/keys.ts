import * as z from 'zod';
import { lane, patterns } from './group.ts';
import { limitsSchema } from './limits.ts';

/** Keys of callers, and keys of the admin API. */

const keyId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'expected 1 to 64 of a-z, 0-9, dot, dash, underscore');

const keyHash = z
  .string()
  .regex(/^sha256:[0-9a-f]{64}$/, 'expected sha256: and 64 hex digits')
  .describe('SHA-256 of the whole key: `sha256:` and 64 hex digits.');

/** An instant as RFC 3339 writes it, in UTC: `2026-11-20T10:00:00Z`. */
const instantText = z.iso.datetime({ error: 'expected an instant like 2026-11-20T10:00:00Z' });

const createdAt = instantText.nullable().default(null).describe('When it was made, in UTC.');
const expiresAt = instantText
  .nullable()
  .default(null)
  .describe('From then on, in UTC, it opens nothing. Null: never.');

/** Limits of callers, over everything that they call. */
const callerLimits = () =>
  limitsSchema
    .pick({ max_concurrency: true, rpm: true, tpm: true, rpd: true, tpd: true, budget_usd: true })
    .prefault({});

/** A team: a name that several keys have, and limits over all of them. */
export const teamSchema = z.strictObject({
  id: keyId.describe(
    'Name of the team, as keys have it: 1 to 64 of a-z, 0-9, dot, dash, underscore.',
  ),
  note: z.string().trim().max(200).default('').describe('For people.'),
  limits: callerLimits().describe(
    'Limits of all keys of the team together, over everything that they call; those of each key hold besides.',
  ),
});

/** A caller's key. */
export const gatewayKeySchema = z.strictObject({
  id: keyId.describe(
    'Name of the key everywhere: 1 to 64 of a-z, 0-9, dot, dash, underscore. It cannot be changed later.',
  ),
  hash: keyHash,
  note: z.string().trim().max(200).default('').describe('For people.'),
  groups: patterns.describe(
    'Globs of the groups that its calls may use; another is refused with `key_forbidden`. Empty: all.',
  ),
  allow: patterns.describe(
    'Globs of additional rights. `lease`: take leases. `lease_usage`: be charged the usage that its leases report, not their reservation. Names of operations without a slot (files, batches …): use them with your secrets. Listing models and counting tokens are always open.',
  ),
  lane_default: lane
    .nullable()
    .default(null)
    .describe('Lane of its calls that name none. Null: that of the group.'),
  lane_max: lane
    .default('normal')
    .describe(
      'The highest lane that its calls may have. With `high`, its callers can overtake all others with `headgate-lane: high`.',
    ),
  timeout_ms: z.int().min(0).max(3_600_000).nullable().default(null).meta({
    description:
      'How long its calls may wait, in whatever group and lane, in place of what those say; longer too. Null: as they say.',
    unit: 'ms',
  }),
  weight: z.number().min(0.01).max(1_000).default(1).meta({
    description:
      'Its part of every group that it calls in, where the group names no weight for it.',
    unit: 'parts',
  }),
  team: keyId
    .nullable()
    .default(null)
    .describe(
      'Team that its calls are charged to: a name, which `teams` may give limits. Null: none.',
    ),
  limits: callerLimits().describe('Limits of this key alone, over everything that it calls.'),
  created_at: createdAt,
  expires_at: expiresAt,
  revoked_at: instantText
    .nullable()
    .default(null)
    .describe('When it was taken back, in UTC; it opens nothing. Null: it was not.'),
  previous: z
    .strictObject({
      hash: keyHash,
      expires_at: instantText.describe('Until when it opens, in UTC.'),
    })
    .nullable()
    .default(null)
    .describe('The key before a rotation, which goes on to open for a while. Null: none.'),
});

/** Roles of the admin API, least first. Each may do what those before it may. */
export const ADMIN_ROLES = ['viewer', 'operator', 'admin'] as const;

export type AdminRole = (typeof ADMIN_ROLES)[number];

/** Name of the holder of `ADMIN_TOKEN` in the audit log. */
export const TOKEN_ACTOR = 'admin-token';

/** A key of the admin API, beside `ADMIN_TOKEN`. */
export const adminKeySchema = z.strictObject({
  id: keyId.describe(
    'Whose it is, as the audit log says: 1 to 64 of a-z, 0-9, dot, dash, underscore.',
  ),
  hash: keyHash,
  role: z
    .enum(ADMIN_ROLES)
    .describe('A viewer looks, an operator handles calls besides, an admin does everything.'),
  created_at: createdAt,
  expires_at: expiresAt,
});

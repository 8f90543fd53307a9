import * as z from 'zod';
import { autoGroupSchema, groupSchema } from './group.ts';
import { adminKeySchema, gatewayKeySchema, teamSchema } from './keys.ts';
import { requireKeySchema, upstreamSchema } from './upstream-config.ts';
import { webhookSchema } from './webhook.ts';

/**
 * The configuration document, as operators write it. Everything but the names has a default; a field
 * that is not listed here is refused.
 */

export const configSchema = z.strictObject({
  upstreams: z
    .array(upstreamSchema)
    .max(200)
    .default([])
    .describe('Your own provider endpoints, and changes to the built-in ones.'),
  groups: z.array(groupSchema).max(1_000).default([]).describe('Groups: what shares a limit.'),
  paused: z
    .boolean()
    .default(false)
    .describe(
      'Stops the whole deployment: no group grants anything, automatic ones and those to come included, and none lets calls pass in `dry_run` or while its object is out of reach. Calls wait as in a paused group.',
    ),
  auto_groups: z
    .array(autoGroupSchema)
    .max(1_000)
    .default([])
    .describe('Automatic groups that are paused or drained, or whose calls go elsewhere.'),
  keys: z
    .array(gatewayKeySchema)
    .max(10_000)
    .default([])
    .describe('Keys of callers, by their hashes.'),
  teams: z
    .array(teamSchema)
    .max(1_000)
    .default([])
    .describe('Teams that have limits of their own, over all keys that name them.'),
  admin_keys: z
    .array(adminKeySchema)
    .max(100)
    .default([])
    .describe('Keys of the admin API, by their hashes. Absent in a `PUT`: as they are.'),
  webhook: webhookSchema
    .nullable()
    .default(null)
    .describe('Where warnings are sent to, beside the log. Null: nowhere.'),
  default_upstream: z
    .string()
    .nullable()
    .default(null)
    .describe('Where `/v1/*` sends a model that no patterns of an upstream know. Null: nowhere.'),
  require_key: requireKeySchema.describe(
    'Whether calls need a gateway key. `auto`: once there is a gateway key. `true`: always. `false`: a call without one passes with the key of its provider. A known gateway key always counts, and an unknown one is always refused. Upstreams can have a rule of their own.',
  ),
  leases: z
    .enum(['keys', 'open'])
    .default('keys')
    .describe(
      'Who may take leases (`POST /leases`). `keys`: gateway keys with `allow: [lease]`. `open`: every caller, including callers without a gateway key if none are configured. Use `open` only where every client that reaches Headgate is trusted.',
    ),
  cors_origins: z
    .array(z.string().min(1).max(300))
    .max(100)
    .default([])
    .describe(
      'Origins whose pages may call, and may ask for `/status` and the admin API, with a key or token in a header and never with a cookie. Each exactly as browsers send it, with any scheme: `https://app.example.com`, `app://obsidian.md`, `chrome-extension://…`. `null` stands for all pages without an origin, which includes sandboxed frames of any site. Empty: CORS is off.',
    ),
});

export type Config = z.output<typeof configSchema>;
export type ConfigInput = z.input<typeof configSchema>;
export type GroupConfig = z.output<typeof groupSchema>;
export type AutoGroupConfig = z.output<typeof autoGroupSchema>;
export type UpstreamConfig = z.output<typeof upstreamSchema>;
export type WebhookConfig = z.output<typeof webhookSchema>;
export type GatewayKeyConfig = z.output<typeof gatewayKeySchema>;
export type TeamConfig = z.output<typeof teamSchema>;
export type AdminKeyConfig = z.output<typeof adminKeySchema>;

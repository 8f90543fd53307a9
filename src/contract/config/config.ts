import * as z from 'zod';
import { WARNING_KINDS } from '../attention.ts';
import { autoGroupSchema, groupSchema } from './group.ts';
import { adminKeySchema, gatewayKeySchema, teamSchema } from './keys.ts';
import { requireKeySchema, upstreamSchema } from './upstream.ts';

/** Kinds of messages: warnings of pools, and entries of the attention list. */
const WEBHOOK_KINDS = [...WARNING_KINDS, 'attention'] as const;

/** A receiver of warnings, in the format of Standard Webhooks or of Slack. */
export const webhookSchema = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .max(2_000)
    .describe('Address of the receiver, with https.'),
  secret: z
    .string()
    .regex(/^WEBHOOK_[A-Z0-9_]{1,50}$/, 'expected the name of a secret that begins with WEBHOOK_')
    .nullable()
    .default(null)
    .describe(
      'Name of the Worker secret that signs messages. It begins with `WEBHOOK_`. null means unsigned messages. Slack does not verify signatures.',
    ),
  format: z
    .enum(['generic', 'slack'])
    .default('generic')
    .describe(
      'Format of messages. `generic`: signed JSON, as in docs/alerts.md. `slack`: a `text` for Slack, Mattermost and others.',
    ),
  kinds: z
    .array(z.enum(WEBHOOK_KINDS))
    .min(1)
    .max(WEBHOOK_KINDS.length)
    .nullable()
    .default(null)
    .describe(
      'Kinds of warnings to send, and `attention` for entries of the attention list. null means all. A condition that has its own warning is then sent once, as that warning.',
    ),
});

/** The configuration document as operators write it. Only names have no default. Unknown fields are rejected. */
export const configSchema = z.strictObject({
  upstreams: z
    .array(upstreamSchema)
    .max(200)
    .default([])
    .describe('Your own provider endpoints, and changes to the built-in ones.'),
  groups: z.array(groupSchema).max(1_000).default([]).describe('Groups: calls that share limits.'),
  paused: z
    .boolean()
    .default(false)
    .describe(
      'Stops the whole deployment. Calls are queued in every group, as in a paused group, including automatic and future groups. `dry_run` and `on_unavailable` pass no calls.',
    ),
  auto_groups: z
    .array(autoGroupSchema)
    .max(1_000)
    .default([])
    .describe('Settings of automatic groups: paused, draining, and `on_saturated`.'),
  keys: z
    .array(gatewayKeySchema)
    .max(10_000)
    .default([])
    .describe('Gateway keys of callers, by their hashes.'),
  teams: z
    .array(teamSchema)
    .max(1_000)
    .default([])
    .describe('Teams with limits over all keys that name them.'),
  admin_keys: z
    .array(adminKeySchema)
    .max(100)
    .default([])
    .describe('Keys of the admin API, by their hashes. If absent in a `PUT`, they stay unchanged.'),
  webhook: webhookSchema
    .nullable()
    .default(null)
    .describe('Receiver of warnings, in addition to the log. null if there is none.'),
  default_upstream: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'Upstream for `/v1/*` if no upstream has a pattern for the model. null if there is none.',
    ),
  require_key: requireKeySchema.describe(
    'Whether calls need a gateway key. `auto`: once a gateway key exists. `true`: always. `false`: calls without one pass with their provider key. A valid gateway key always counts, and an unknown one is always rejected. Upstreams can override this.',
  ),
  leases: z
    .enum(['keys', 'open'])
    .default('keys')
    .describe(
      'Who may acquire leases (`POST /leases`). `keys`: gateway keys with `allow: [lease]`. `open`: every caller, including callers without a gateway key if none are configured. Use `open` only if you trust every client that can reach Headgate.',
    ),
  cors_origins: z
    .array(z.string().min(1).max(300))
    .max(100)
    .default([])
    .describe(
      'Origins of web pages that may send calls and use `/status` and the admin API. They authenticate with a key or token in a header, never with a cookie. Write each origin exactly as browsers send it, with any scheme, such as `https://app.example.com`, `app://obsidian.md` or `chrome-extension://…`. `null` stands for all pages without an origin, including sandboxed frames of any site. If empty, CORS is disabled.',
    ),
});

export type Config = z.output<typeof configSchema>;
export type ConfigInput = z.input<typeof configSchema>;
export type GroupConfig = z.output<typeof groupSchema>;
export type AutoGroupConfig = z.output<typeof autoGroupSchema>;
export type WebhookConfig = z.output<typeof webhookSchema>;
export type GatewayKeyConfig = z.output<typeof gatewayKeySchema>;
export type TeamConfig = z.output<typeof teamSchema>;
export type AdminKeyConfig = z.output<typeof adminKeySchema>;

import * as z from 'zod';
import { LANES } from '../../core/words/ticket.ts';
import {
  feedForwardSchema,
  limitsSchema,
  onSaturatedSchema,
  priceSchema,
  retriesSchema,
  text,
} from './limits.ts';
import { DIALECTS } from '../dialect.ts';

/**
 * The configuration document, as operators write it. Everything but the names has a default; a field
 * that is not listed here is refused.
 */

const patterns = z.array(text).max(200).default([]);
const cooldown = z.union([z.literal('auto'), z.int().min(0).max(60_000)]);

/** Ids that the Worker's own routes take. */
export const RESERVED_UPSTREAM_IDS = ['v1', 'admin', 'status', 'metrics', 'healthz'];

const groupNameSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'expected 1 to 64 of a-z, 0-9, dot, dash, underscore');

const lane = z.enum(LANES);

const tenantBy = z.union([
  z.literal('caller'),
  z.string().regex(/^header:[a-z0-9-]{1,64}$/, 'expected caller or header:<name>'),
]);

const partitionSchema = z.union([
  z.enum(['api_key', 'caller', 'model', 'upstream', 'base_url']),
  z
    .string()
    .regex(
      /^header:[a-z0-9-]{1,64}$/,
      'expected api_key, caller, model, upstream, base_url or header:<name>',
    ),
]);

export const groupSchema = z.strictObject({
  name: groupNameSchema,
  match: z
    .strictObject({
      models: patterns,
      upstreams: patterns,
      base_urls: patterns,
      /** Gateway key ids or fingerprints, never keys. */
      keys: patterns,
      /** Names of operations: chat, messages, embeddings … */
      operations: patterns,
    })
    .prefault({}),
  partition_by: z.array(partitionSchema).max(3).default([]),
  limits: limitsSchema.prefault({}),
  queue: z
    .strictObject({
      max_length: z.int().min(0).max(5_000).default(1_000),
      timeout_ms: z.int().min(0).max(3_600_000).default(240_000),
      /** Waiters of one tenant, and of one agent run. */
      max_length_each: z.int().min(1).max(5_000).nullable().default(null),
      max_length_each_agent: z.int().min(1).max(5_000).nullable().default(null),
      /** How much older than its arrival an agent run makes a call; 0: first come; null: no bound. */
      age_credit_ms: z.int().min(0).max(86_400_000).nullable().default(120_000),
      /** Least share of grants for lanes with waiters. 0 may starve. */
      lane_shares: z
        .strictObject({
          normal: z.number().min(0).max(0.5).default(0.1),
          low: z.number().min(0).max(0.5).default(0.05),
        })
        .prefault({}),
      /** Lanes by model, for agents that cannot send a header. The first that matches counts. */
      lane_rules: z
        .array(z.strictObject({ models: z.array(text).min(1).max(200), lane }))
        .max(50)
        .default([]),
      /** Lane of calls that name none, and the best lane that a call may have. */
      lane_default: lane.default('normal'),
      lane_max: lane.default('high'),
      /** Server-sent comments while a stream waits: from when on, and how often. */
      keepalive: z
        .strictObject({
          after_ms: z.int().min(0).max(3_600_000).nullable().default(null),
          every_ms: z.int().min(1_000).max(120_000).default(15_000),
        })
        .prefault({}),
      /** What becomes of a call that would wait for its own parent: as many pass as that has slots. */
      nested: z.enum(['reject', 'pass']).default('reject'),
    })
    .prefault({}),
  fairness: z
    .strictObject({
      /** Who shares: the caller, or whom a header names, and below that the agents of each. */
      by: z
        .union([z.tuple([tenantBy]), z.tuple([tenantBy, z.literal('agent')])])
        .default(['caller', 'agent']),
      max_concurrency_each: z.int().min(1).max(100_000).nullable().default(null),
      max_concurrency_each_agent: z.int().min(1).max(100_000).nullable().default(null),
      /** Weights by tenant; 1 for who is not named. */
      weights: z.record(text, z.number().min(0.01).max(1_000)).default({}),
      /** Slots by tenant, or by lane as in "lane:high", that others use while they are free. */
      reserved: z.record(text, z.int().min(1).max(100_000)).default({}),
    })
    .prefault({}),
  holds: z
    .strictObject({
      release_cooldown_ms: cooldown.default('auto'),
      cancel_cooldown_ms: cooldown.default('auto'),
      failure_hold_ms: z.int().min(0).max(60_000).default(2_000),
      /** Longest silence of the upstream, in milliseconds; null watches only the wait for its headers. */
      idle_ms: z.int().min(1).max(86_400_000).nullable().default(600_000),
      /** Longest time in which the caller takes nothing of what there is for it; null: any. */
      stalled_ms: z.int().min(1).max(86_400_000).nullable().default(60_000),
      /** Longest time that one call may hold its slot. */
      max_hold_ms: z.int().min(1).max(86_400_000).default(3_600_000),
    })
    .prefault({}),
  /** Learns from refusals how many calls the upstream takes at once; `off` goes by the limit alone. */
  adaptive: z.enum(['auto', 'off']).default('auto'),
  /** Counts tokens and cost of every call, though no limit of the group needs them. */
  track_usage: z.boolean().default(false),
  feed_forward: feedForwardSchema.prefault({}),
  retries: retriesSchema.prefault({}),
  on_saturated: onSaturatedSchema.default('queue'),
  /** Warns when this part of the limit is in use for a minute while calls wait. Null: never. */
  warn_at: z.number().min(0.01).max(1).nullable().default(0.8),
  /** Warns when calls wait longer than this. Null: half of `queue.timeout_ms`. */
  warn_wait_ms: z.int().min(1).max(3_600_000).nullable().default(null),
  /** What happens to calls while the group's object cannot be reached. */
  on_unavailable: z
    .union([
      z.literal('reject'),
      z.strictObject({
        /** So many calls at once per Worker isolate pass without a slot, counted and shown. */
        pass_with_limit_each: z.int().min(1).max(1_000),
      }),
    ])
    .default('reject'),
  location: z
    .enum(['wnam', 'enam', 'sam', 'weur', 'eeur', 'apac', 'oc', 'afr', 'me'])
    .nullable()
    .default(null),
  jurisdiction: z.enum(['eu', 'fedramp', 'us']).nullable().default(null),
  paused: z.boolean().default(false),
  /** Takes no new calls; the queue and what is in flight go on to their end. */
  draining: z.boolean().default(false),
  /** Decides and counts, and lets everything pass. */
  dry_run: z.boolean().default(false),
});

/** All that can be set of a group that Headgate makes by itself. */
export const autoGroupSchema = z.strictObject({
  name: z
    .string()
    .regex(
      /^auto:[^\s/#]{1,64}(\/[^\s#]{1,128})?$/,
      'expected auto:<upstream> or auto:<upstream>/<models>, as in auto:openai',
    ),
  /** Queues and grants nothing, in all its pools. */
  paused: z.boolean().default(false),
  /** Takes no new calls, in all its pools. */
  draining: z.boolean().default(false),
});

export const upstreamSchema = z.strictObject({
  id: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,31}$/, 'expected 1 to 32 of a-z, 0-9, dash')
    .refine((id) => !RESERVED_UPSTREAM_IDS.includes(id), {
      error: `may not be one of ${RESERVED_UPSTREAM_IDS.join(', ')}`,
    }),
  base_url: z.url({ protocol: /^https?$/ }).optional(),
  dialect: z.enum(DIALECTS).optional(),
  models: z.array(text).max(200).optional(),
  auth: z
    .union([
      z.literal('passthrough'),
      z.strictObject({
        secret: z
          .string()
          .regex(
            /^UPSTREAM_[A-Z0-9_]{1,50}$/,
            'expected the name of a secret that begins with UPSTREAM_',
          ),
      }),
    ])
    .default('passthrough'),
  aliases: z.record(text, text).default({}),
  /** Operations without a slot that calls with the secret may use: files, batches … */
  allow: patterns,
  /** Where the OpenAI-shaped routes begin under base_url, as in "/v1". */
  openai_at: z
    .string()
    .regex(/^(\/[^/?#]+)*$/, 'expected a path like /v1, without a trailing slash')
    .nullable()
    .optional(),
  /** Where the Anthropic-shaped routes begin under base_url. */
  anthropic_at: z
    .string()
    .regex(/^(\/[^/?#]+)*$/, 'expected a path like /v1, without a trailing slash')
    .nullable()
    .optional(),
  /** Name of a service or VPC binding that carries the calls. */
  via: z
    .string()
    .regex(/^[A-Z][A-Z0-9_]{0,49}$/, 'expected the name of a binding')
    .nullable()
    .default(null),
  /** Prices by model, or by the beginning of its name with a `*` behind it, before the built-in ones. */
  prices: z
    .record(
      text.regex(/^([^*]+\*?|\*)$/, 'expected a model, or a beginning with one * behind it'),
      priceSchema,
    )
    .default({}),
  /** Whether its rate-limit headers are believed. `auto`: as the built-in profile says. */
  limit_headers: z.enum(['auto', 'use', 'ignore']).default('auto'),
  /** Asks for the usage of OpenAI streams whose callers did not, and takes it out of the answer. */
  inject_usage: z.boolean().default(false),
  enabled: z.boolean().default(true),
});

const keyId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'expected 1 to 64 of a-z, 0-9, dot, dash, underscore');

/** SHA-256 of a whole key, in hex. */
const keyHash = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'expected sha256: and 64 hex digits');

/** An instant as RFC 3339 writes it, in UTC: `2026-11-20T10:00:00Z`. */
const instantText = z.iso.datetime({ error: 'expected an instant like 2026-11-20T10:00:00Z' });

/** A caller's key. */
export const gatewayKeySchema = z.strictObject({
  id: keyId,
  hash: keyHash,
  /** For people. */
  note: z.string().trim().max(200).default(''),
  /** Globs of the groups that its calls may use; empty: all. */
  groups: patterns,
  /** Operations without a slot that it may use with a secret of the operator's: files, batches … */
  allow: patterns,
  /** Lane of its calls that name none, and the best that they may have. */
  lane_default: lane.nullable().default(null),
  lane_max: lane.default('high'),
  /** Its part of every group that it calls in, where the group itself names no weight for it. */
  weight: z.number().min(0.01).max(1_000).default(1),
  /** Limits of this key alone, over everything that it calls. */
  limits: limitsSchema
    .pick({ max_concurrency: true, rpm: true, tpm: true, rpd: true, tpd: true, budget_usd: true })
    .prefault({}),
  created_at: instantText.nullable().default(null),
  /** From then on it opens nothing. */
  expires_at: instantText.nullable().default(null),
  /** It was taken back, and opens nothing. */
  revoked_at: instantText.nullable().default(null),
  /** The key before a rotation, which goes on to open for a while. */
  previous: z.strictObject({ hash: keyHash, expires_at: instantText }).nullable().default(null),
});

/** What a key of the admin API may do, least first. Each may do what those before it may. */
export const ADMIN_ROLES = ['viewer', 'operator', 'admin'] as const;

export type AdminRole = (typeof ADMIN_ROLES)[number];

/** The audit log's name of who holds `ADMIN_TOKEN`. */
export const TOKEN_ACTOR = 'admin-token';

/** A key of the admin API, beside `ADMIN_TOKEN`. */
export const adminKeySchema = z.strictObject({
  id: keyId,
  hash: keyHash,
  role: z.enum(ADMIN_ROLES),
  created_at: instantText.nullable().default(null),
  expires_at: instantText.nullable().default(null),
});

/** A receiver of warnings, by the rules of Standard Webhooks. */
const webhookSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  /** Name of the secret that signs what is sent. */
  secret: z
    .string()
    .regex(/^WEBHOOK_[A-Z0-9_]{1,50}$/, 'expected the name of a secret that begins with WEBHOOK_'),
});

export const configSchema = z.strictObject({
  upstreams: z.array(upstreamSchema).max(200).default([]),
  groups: z.array(groupSchema).max(1_000).default([]),
  /** Automatic groups that are paused or drained. */
  auto_groups: z.array(autoGroupSchema).max(1_000).default([]),
  keys: z.array(gatewayKeySchema).max(10_000).default([]),
  /** Keys of the admin API. */
  admin_keys: z.array(adminKeySchema).max(100).default([]),
  /** Where warnings are sent to, beside the log. Null: nowhere. */
  webhook: webhookSchema.nullable().default(null),
  /** Where `/v1/*` sends a model that no upstream's patterns know. */
  default_upstream: z.string().nullable().default(null),
  /** Origins whose browsers may call; empty: CORS is off. */
  cors_origins: z
    .array(
      z
        .string()
        .regex(
          /^https?:\/\/[^\s/?#@]{1,200}$/,
          'expected an origin like https://app.example.com, without a slash after it',
        ),
    )
    .max(100)
    .default([]),
});

export type Config = z.output<typeof configSchema>;
export type ConfigInput = z.input<typeof configSchema>;
export type GroupConfig = z.output<typeof groupSchema>;
export type AutoGroupConfig = z.output<typeof autoGroupSchema>;
export type UpstreamConfig = z.output<typeof upstreamSchema>;
export type WebhookConfig = z.output<typeof webhookSchema>;
export type GatewayKeyConfig = z.output<typeof gatewayKeySchema>;
export type AdminKeyConfig = z.output<typeof adminKeySchema>;

import * as z from 'zod';
import { BREAKER_DEFAULTS } from '../../core/words/settings.ts';
import { limitsSchema, text } from './limits.ts';

/**
 * The members of a group, and how a group reacts to its upstreams: holds, retries, breaker, and where calls spill to.
 */

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

const DURATION = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/;

/** Parses a duration such as `500ms`, `2s`, `5m` or `1h`. Returns NaN for any other text. */
export function durationMs(written: string): number {
  const [, amount, unit] = DURATION.exec(written) ?? [];
  return Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

/** A duration as text, between two durations in the same notation. */
function durationSchema(least: string, most: string) {
  return z
    .string()
    .regex(DURATION, 'expected a duration like 500ms, 2s, 5m or 1h')
    .refine(
      (written) =>
        !(durationMs(written) < durationMs(least) || durationMs(written) > durationMs(most)),
      { error: `must be between ${least} and ${most}` },
    );
}

export const memberSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'expected 1 to 64 of a-z, 0-9, dot, dash, underscore')
    .optional()
    .describe(
      'Name of the member. Absent means its upstream and secret, as in `openai:team-a` for `UPSTREAM_TEAM_A`.',
    ),
  upstream: text.describe('Id of the upstream of its calls.'),
  secret: z
    .string()
    .regex(/^UPSTREAM_[A-Z0-9_]{1,50}$/, 'expected the name of a secret that begins with UPSTREAM_')
    .optional()
    .describe(
      'Name of the Worker secret with its key. It begins with `UPSTREAM_`. Absent means that of the upstream, if it has one.',
    ),
  models: z
    .record(text.regex(/^[^*]+$/, 'expected the name of a model, not a pattern'), text)
    .default({})
    .describe(
      'Model names at this member, by the names that callers use, as in `{ gpt-4o: eu-deployment-7 }`.',
    ),
  limits: limitsSchema
    .omit({ max_weight: true })
    .prefault({})
    .describe('Limits of this member. Limits of the group apply to all members together.'),
  weight: z.number().min(0.01).max(1_000).default(1).meta({
    description: 'Its share of the calls among the members of its tier that have room.',
    unit: 'parts',
  }),
  tier: z.int().min(1).max(10).default(1).meta({
    description: 'Members of a higher tier get calls only while no lower tier has room.',
    unit: 'tier',
  }),
  first_token_ms: z.int().min(1).max(3_600_000).optional().meta({
    description:
      'Maximum time to the first content of an answer, if another member or upstream can take the call instead. Comments, pings and other events before the content do not count. Absent means no maximum.',
    unit: 'ms',
  }),
  enabled: z.boolean().default(true).describe('Whether it gets calls.'),
});

export const membersSchema = z.array(memberSchema).max(32).default([]);

export const affinitySchema = z.strictObject({
  by: z
    .enum(['agent', 'caller', 'none'])
    .default('agent')
    .describe('Which calls go to the member of their last call, so that prompt caches stay warm.'),
  for: durationSchema('1s', '24h')
    .default('5m')
    .describe('How long the member is remembered after the last call, as in `90s` or `5m`.'),
  wait: durationSchema('0s', '1h')
    .default('2s')
    .describe(
      'How long a call waits for its member while another one has room. `0s` means no wait.',
    ),
});

export type MemberConfig = z.output<typeof memberSchema>;

/** Id of a member: its name, or one derived from its upstream and secret. */
export function memberIdOf({
  name,
  upstream,
  secret,
}: Pick<MemberConfig, 'name' | 'upstream' | 'secret'>): string {
  if (name !== undefined) return name;
  if (secret === undefined) return upstream;
  return `${upstream}:${secret
    .replace(/^UPSTREAM_/, '')
    .toLowerCase()
    .replaceAll('_', '-')}`;
}

/** Default for the longest time that a run may hold its slot. */
const MAX_RUN_MS = 900_000;

/** Minimum rate of an upload. Even a line of 9,600 bit/s, or compressed live speech, is faster. */
const UPLOAD_MIN_BYTES_PER_S = 1_000;

const cooldown = z.union([z.literal('auto'), z.int().min(0).max(60_000)]);

export const holdsSchema = z.strictObject({
  release_cooldown_ms: cooldown.default('auto').meta({
    description:
      "How long a slot stays unavailable after a successful call, because providers' counters lag. `auto`: as long as the pool has learned, initially 0 and at most 1,000 ms.",
    unit: 'ms',
  }),
  cancel_cooldown_ms: cooldown.default('auto').meta({
    description:
      'How long a slot stays unavailable after a canceled call. `auto`: as after a successful call.',
    unit: 'ms',
  }),
  failure_hold_ms: z.int().min(0).max(60_000).default(2_000).meta({
    description: 'How long a slot stays unavailable after a 429 or 5xx from the upstream.',
    unit: 'ms',
  }),
  idle_ms: z.int().min(1).max(86_400_000).nullable().default(600_000).meta({
    description:
      'Longest silence of the upstream before the call is cut. null means that only the wait for headers is limited, to 10 minutes.',
    unit: 'ms',
  }),
  stalled_ms: z.int().min(1).max(86_400_000).nullable().default(60_000).meta({
    description:
      'Longest time that a caller may read nothing of the response, or fall behind `upload_min_bytes_per_s` with its upload, before the call is cut. null means no limit.',
    unit: 'ms',
  }),
  upload_min_bytes_per_s: z.int().min(0).max(1_000_000).default(UPLOAD_MIN_BYTES_PER_S).meta({
    description:
      'Minimum rate at which a caller sends its body while the call holds a slot. A caller that is `stalled_ms` behind gets 408. With 0, only a pause of `stalled_ms` cuts the call.',
    unit: 'bytes/s',
  }),
  max_hold_ms: z.int().min(1).max(86_400_000).default(3_600_000).meta({
    description: 'Longest time that a call may hold its slot before it is cut.',
    unit: 'ms',
  }),
  max_run_ms: z.int().min(0).max(86_400_000).default(MAX_RUN_MS).meta({
    description:
      'Longest time that a run keeps the slot of the call that started it. A run continues at the upstream after the response, such as a background response, a run of an assistant, or a video. With 0, runs hold no slot.',
    unit: 'ms',
  }),
});

export const breakerSchema = z.strictObject({
  threshold: z.number().min(0.01).max(1).nullable().default(BREAKER_DEFAULTS.failedShare).meta({
    description:
      'The circuit breaker opens when this share of recent calls failed with an overload, another 5xx, or a broken connection. null disables it.',
    unit: 'of calls',
  }),
  min_calls: z.int().min(1).max(100).default(BREAKER_DEFAULTS.callsMin).meta({
    description:
      'Minimum number of results within `window_ms` before the breaker opens. It counts the last 20 results, or this many if that is more.',
    unit: 'calls',
  }),
  window_ms: z.int().min(1_000).max(3_600_000).default(BREAKER_DEFAULTS.windowMs).meta({
    description: 'Age up to which a result counts.',
    unit: 'ms',
  }),
  hold_ms: z.int().min(100).max(3_600_000).default(BREAKER_DEFAULTS.openMs).meta({
    description:
      'How long the breaker stays open before a call probes the upstream. Doubles after each failed probe. If the upstream names a longer wait, that applies, up to 15 minutes.',
    unit: 'ms',
  }),
  hold_max_ms: z.int().min(100).max(3_600_000).default(BREAKER_DEFAULTS.openMsMax).meta({
    description: 'Maximum to which `hold_ms` doubles.',
    unit: 'ms',
  }),
});

export const feedForwardSchema = z.strictObject({
  keep_requests: z.number().min(0).max(1_000).default(2).meta({
    description:
      'Pauses when headers of the upstream report fewer remaining requests than this or than `keep_share`, whichever is lower.',
    unit: 'requests',
  }),
  keep_tokens: z.number().min(0).max(1_000_000_000).nullable().default(null).meta({
    description:
      'Pauses when headers of the upstream report fewer remaining tokens than this. Capped at half of the limit. null uses `keep_share`.',
    unit: 'tokens',
  }),
  keep_share: z.number().min(0).max(0.5).default(0.05).meta({
    description:
      'Pauses when headers of the upstream report that a smaller share of a limit remains. For tokens, `keep_tokens` replaces it if set.',
    unit: 'of the limit',
  }),
  wait_max_ms: z.int().min(0).max(600_000).default(65_000).meta({
    description: 'Longest pause because of a rate-limit header.',
    unit: 'ms',
  }),
});

export const retriesSchema = z.strictObject({
  max: z.int().min(0).max(10).default(0).meta({
    description:
      'Maximum retries after an overload, a 5xx or a broken connection, if nothing was sent to the caller yet. One retry at another member is always made.',
    unit: 'retries',
  }),
  max_body_bytes: z.int().min(0).max(33_554_432).default(4_194_304).meta({
    description: 'Larger bodies are not kept, so their calls are not retried.',
    unit: 'bytes',
  }),
  budget: z.number().min(0).max(1).default(0.1).meta({
    description: 'Maximum retries as a share of recent calls to the upstream, per isolate.',
    unit: 'of calls',
  }),
});

const spillTargetSchema = z.strictObject({
  upstream: text.describe('Id of an upstream.'),
  model: text
    .nullable()
    .default(null)
    .describe('Model to request there. null means the model of the call.'),
});

export const onSaturatedSchema = z.union([
  z.enum(['queue', 'reject']),
  z.strictObject({
    spill_to: z
      .array(z.union([text, spillTargetSchema]))
      .min(1)
      .max(8)
      .describe(
        'Other upstreams of the same dialect, tried in order. The call queues at the last one.',
      ),
    after_ms: z.int().min(0).max(3_600_000).default(0).meta({
      description: 'How long a call may wait at each upstream except the last. 0 means no wait.',
      unit: 'ms',
    }),
    first_token_ms: z.int().min(1).max(3_600_000).optional().meta({
      description:
        'Maximum time to the first content at each upstream except the last. Then the call goes to the next one. The canceled attempt may still cost money. Comments, pings and other events before the content do not count. Absent means no maximum.',
      unit: 'ms',
    }),
  }),
]);

export type OnSaturated = z.output<typeof onSaturatedSchema>;

export const onUnavailableSchema = z.union([
  z.literal('reject'),
  z.strictObject({
    pass_with_limit_each: z.int().min(1).max(1_000).meta({
      description:
        'Maximum concurrent calls per Worker isolate that pass without a slot. They are counted and shown.',
      unit: 'calls',
    }),
  }),
]);

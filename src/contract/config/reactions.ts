import * as z from 'zod';
import { BREAKER_DEFAULTS } from '../../core/words/settings.ts';
import { text } from './limits.ts';

/** Default for the longest time that a run may hold its slot. */
export const MAX_RUN_MS = 900_000;

/** Minimum rate of an upload. Even a line of 9,600 bit/s, or compressed live speech, is faster. */
export const UPLOAD_MIN_BYTES_PER_S = 1_000;

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

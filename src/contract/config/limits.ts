import * as z from 'zod';

/** What of a group's configuration is about its upstream's limits, and about their price. */

export const text = z.string().trim().min(1).max(200);

const rate = z.int().min(0).max(1_000_000_000_000).nullable().default(null);
const usd = z.number().min(0).max(1_000_000_000).nullable().default(null);
const perMillion = z.number().min(0).max(1_000_000);

/** USD per million tokens. What is not given of the cache costs as much as input. */
export const priceSchema = z.strictObject({
  input: perMillion,
  output: perMillion,
  cache_read: perMillion.optional(),
  cache_write: perMillion.optional(),
});

/** The limits of a group. Null: there is none of that kind. */
export const limitsSchema = z.strictObject({
  /** Slots. 0 grants nothing; null leaves concurrency unlimited. */
  max_concurrency: z.int().min(0).max(100_000).nullable().default(null),
  /** Slots that one call may ask for with `headgate-weight`. */
  max_weight: z.int().min(1).max(1_000).default(1),
  /**
   * Requests, all tokens, input tokens and output tokens per minute; requests and all tokens in any 24
   * hours, which are not the calendar's. 0 grants nothing.
   */
  rpm: rate,
  tpm: rate,
  itpm: rate,
  otpm: rate,
  rpd: rate,
  tpd: rate,
  /** Calls that may begin within a second, however many slots are free. */
  starts_per_s: z.number().min(0.01).max(100_000).nullable().default(null),
  /**
   * The part of a minute's quantity that may go at once, one request at the least. Null: what 10 seconds
   * bring in. Whatever it is, no minute exceeds the limit.
   */
  burst: z.number().min(0.001).max(1).nullable().default(null),
  /** USD per hour, day and month of the calendar, by UTC. What is in flight counts with its estimate. */
  budget_usd: z
    .strictObject({
      per_hour: usd,
      per_day: usd,
      per_month: usd,
      /** USD per million tokens for models without a known price; null refuses them. */
      fallback_price: priceSchema.nullable().default(null),
    })
    .prefault({}),
});

/** When the upstream's limit headers make the group wait before it is refused. */
export const feedForwardSchema = z.strictObject({
  /**
   * Nearly empty: of requests less is left than so many and than that part of the limit, of tokens less
   * than that part.
   */
  keep_requests: z.number().min(0).max(1_000).default(2),
  keep_share: z.number().min(0).max(0.5).default(0.05),
  /** Longest pause, in milliseconds. */
  wait_max_ms: z.int().min(0).max(600_000).default(65_000),
});

/** When a call is sent again. */
export const retriesSchema = z.strictObject({
  /** More tries after an overload, a 5xx or a broken connection, before anything was sent on. */
  max: z.int().min(0).max(10).default(0),
  /** Larger bodies are not kept, so their calls are not sent again. */
  max_body_bytes: z.int().min(0).max(33_554_432).default(4_194_304),
  /** Such tries as a part of recent calls to the upstream, in one isolate. */
  budget: z.number().min(0).max(1).default(0.1),
});

/** What becomes of a call that finds no room. */
export const onSaturatedSchema = z.union([
  z.enum(['queue', 'reject']),
  z.strictObject({
    /** Other upstreams of the same dialect, tried in turn; the call waits at the last. */
    spill_to: z
      .array(
        z.union([text, z.strictObject({ upstream: text, model: text.nullable().default(null) })]),
      )
      .min(1)
      .max(8),
    /** How long a call may wait at each upstream but the last, in milliseconds. 0: not at all. */
    after_ms: z.int().min(0).max(3_600_000).default(0),
    order: z.enum(['listed', 'least_busy', 'latency', 'price']).default('listed'),
  }),
]);

export type OnSaturated = z.output<typeof onSaturatedSchema>;

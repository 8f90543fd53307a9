import * as z from 'zod';

export const text = z.string().trim().min(1).max(200);

const rate = z.int().min(0).max(1_000_000_000_000).nullable().default(null);
const usd = z.number().min(0).max(1_000_000_000).nullable().default(null);
const perMillion = z.number().min(0).max(1_000_000);

const PER_MILLION = 'USD per million tokens';

const priceSchema = z.strictObject({
  input: perMillion.meta({ description: 'Price of input tokens.', unit: PER_MILLION }),
  output: perMillion.meta({ description: 'Price of output tokens.', unit: PER_MILLION }),
  cache_read: perMillion.optional().meta({
    description: 'Price of input read from a cache. Defaults to that of input.',
    unit: PER_MILLION,
  }),
  cache_write: perMillion.optional().meta({
    description: 'Price of input written to a cache. Defaults to that of input.',
    unit: PER_MILLION,
  }),
});

/** Price of a model at an upstream, optionally with multiples by service tier. */
export const upstreamPriceSchema = priceSchema.extend({
  tiers: z.record(text, z.number().min(0).max(1_000)).optional().meta({
    unit: 'times these prices',
    description:
      'Multiples of these prices by service tier, as in `service_tier`. They take precedence over the built-in ones. `auto` also applies to calls that ask for no tier.',
  }),
});

const budgetSchema = z.strictObject({
  per_hour: usd.meta({
    description:
      'Maximum cost of all calls in a UTC hour. Calls in flight count with their estimate. null means no budget.',
    unit: 'USD',
  }),
  per_day: usd.meta({
    description: 'Maximum cost of all calls in a UTC day. null means no budget.',
    unit: 'USD',
  }),
  per_month: usd.meta({
    description: 'Maximum cost of all calls in a UTC month. null means no budget.',
    unit: 'USD',
  }),
  fallback_price: priceSchema.nullable().default(null).meta({
    description:
      'Price of models without a known price. null means that, with a budget, such calls are rejected with `price_unknown`.',
    unit: PER_MILLION,
  }),
});

export const limitsSchema = z.strictObject({
  max_concurrency: z.int().min(0).max(100_000).nullable().default(null).meta({
    description: 'Slots: concurrent calls. 0 starts no calls. null means unlimited.',
    unit: 'slots',
  }),
  max_weight: z.int().min(1).max(1_000).default(1).meta({
    description:
      'Maximum slots that one call may take with `headgate-weight`. Calls that ask for more are rejected with `never_fits`.',
    unit: 'slots',
  }),
  rpm: rate.meta({
    description: 'Requests per minute. 0 starts no calls. null means no limit.',
    unit: 'requests',
  }),
  tpm: rate.meta({
    description: 'Tokens per minute, input and output. 0 starts no calls. null means no limit.',
    unit: 'tokens',
  }),
  itpm: rate.meta({
    description: 'Input tokens per minute. 0 starts no calls. null means no limit.',
    unit: 'tokens',
  }),
  otpm: rate.meta({
    description: 'Output tokens per minute. 0 starts no calls. null means no limit.',
    unit: 'tokens',
  }),
  rpd: rate.meta({
    description: 'Requests in any 24 hours. 0 starts no calls. null means no limit.',
    unit: 'requests',
  }),
  tpd: rate.meta({
    description:
      'Tokens in any 24 hours, input and output. 0 starts no calls. null means no limit.',
    unit: 'tokens',
  }),
  starts_per_s: z.number().min(0.01).max(100_000).nullable().default(null).meta({
    description:
      'Maximum number of calls that start per second, even if more slots are free. null means no limit.',
    unit: 'calls',
  }),
  burst: z.number().min(0.001).max(1).nullable().default(null).meta({
    description:
      "Share of a minute's requests or tokens that may start at once, at least one request. No minute exceeds the limit. null means the share of 10 seconds.",
    unit: 'of a minute',
  }),
  budget_usd: budgetSchema
    .prefault({})
    .describe('Budgets. Calls beyond a budget are rejected with `budget_exhausted`.'),
});

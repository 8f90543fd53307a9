import * as z from 'zod';

/** The part of a configuration that is about limits and prices: of groups, and of keys alone. */

export const text = z.string().trim().min(1).max(200);

const rate = z.int().min(0).max(1_000_000_000_000).nullable().default(null);
const usd = z.number().min(0).max(1_000_000_000).nullable().default(null);
const perMillion = z.number().min(0).max(1_000_000);

const PER_MILLION = 'USD per million tokens';

const priceSchema = z.strictObject({
  input: perMillion.meta({ description: 'Price of input tokens.', unit: PER_MILLION }),
  output: perMillion.meta({ description: 'Price of output tokens.', unit: PER_MILLION }),
  cache_read: perMillion.optional().meta({
    description: 'Price of input read from a cache. Absent: that of input.',
    unit: PER_MILLION,
  }),
  cache_write: perMillion.optional().meta({
    description: 'Price of input written to a cache. Absent: that of input.',
    unit: PER_MILLION,
  }),
});

/** A price at an upstream, optionally with the prices of tiers. */
export const upstreamPriceSchema = priceSchema.extend({
  tiers: z.record(text, z.number().min(0).max(1_000)).optional().meta({
    unit: 'times these prices',
    description:
      'Multiples of these prices by tier of service, as in `service_tier`. They take precedence over the built-in ones. `auto` also applies to calls that ask for no tier.',
  }),
});

const budgetSchema = z.strictObject({
  per_hour: usd.meta({
    description:
      'Most that calls may cost in an hour of UTC; those in flight count with their estimate. Null: no budget.',
    unit: 'USD',
  }),
  per_day: usd.meta({
    description: 'Most that calls may cost in a day of UTC. Null: no budget.',
    unit: 'USD',
  }),
  per_month: usd.meta({
    description: 'Most that calls may cost in a month of UTC. Null: no budget.',
    unit: 'USD',
  }),
  fallback_price: priceSchema.nullable().default(null).meta({
    description:
      'Price of models without a known one. Null: with a budget, such calls are refused with `price_unknown`.',
    unit: PER_MILLION,
  }),
});

export const limitsSchema = z.strictObject({
  max_concurrency: z.int().min(0).max(100_000).nullable().default(null).meta({
    description: 'Slots: calls in flight at once. 0 grants nothing. Null: unlimited.',
    unit: 'slots',
  }),
  max_weight: z.int().min(1).max(1_000).default(1).meta({
    description:
      'Slots that one call may ask for with `headgate-weight`; more is refused with `never_fits`.',
    unit: 'slots',
  }),
  rpm: rate.meta({
    description: 'Requests per minute. 0 grants nothing. Null: no limit.',
    unit: 'requests',
  }),
  tpm: rate.meta({
    description: 'Tokens per minute, input and output. 0 grants nothing. Null: no limit.',
    unit: 'tokens',
  }),
  itpm: rate.meta({
    description: 'Input tokens per minute. 0 grants nothing. Null: no limit.',
    unit: 'tokens',
  }),
  otpm: rate.meta({
    description: 'Output tokens per minute. 0 grants nothing. Null: no limit.',
    unit: 'tokens',
  }),
  rpd: rate.meta({
    description: 'Requests in any 24 hours. 0 grants nothing. Null: no limit.',
    unit: 'requests',
  }),
  tpd: rate.meta({
    description: 'Tokens in any 24 hours, input and output. 0 grants nothing. Null: no limit.',
    unit: 'tokens',
  }),
  starts_per_s: z.number().min(0.01).max(100_000).nullable().default(null).meta({
    description:
      'Calls that may begin within a second, however many slots are free. Null: any number.',
    unit: 'calls',
  }),
  burst: z.number().min(0.001).max(1).nullable().default(null).meta({
    description:
      'Part of the quantity of a minute that may go at once, one request at the least; no minute exceeds the limit. Null: what 10 seconds bring in.',
    unit: 'of a minute',
  }),
  budget_usd: budgetSchema
    .prefault({})
    .describe('Budgets. Calls beyond one are refused with `budget_exhausted`.'),
});

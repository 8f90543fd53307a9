import * as z from 'zod';

const text = z.string().trim().min(1).max(200);
const texts = z.array(text).max(200).default([]);
const rate = z.int().min(0).nullable().default(null);

export const concurrencyGroupsSchema = z.strictObject({
  concurrency_groups: z
    .array(
      z.strictObject({
        name: text.describe('Name of the group.'),
        max_concurrency: z.int().min(0).max(100_000).meta({
          description: 'Slots: calls in flight at once.',
          unit: 'slots',
        }),
        models: texts.describe('Globs of models.'),
        providers: texts.describe('Ids of upstreams.'),
      }),
    )
    .max(1_000)
    .describe('Groups.'),
});

export const rateLimitSchema = z.strictObject({
  model: text.describe('Model that the limit is of.'),
  rate_limit: z
    .strictObject({
      rpm: rate.meta({ description: 'Requests per minute. Null: no limit.', unit: 'requests' }),
      tpm: rate.meta({ description: 'Tokens per minute. Null: no limit.', unit: 'tokens' }),
    })
    .describe('Its limits.'),
});
export const rateLimitListSchema = z.array(rateLimitSchema).max(1_000);
export const rateLimitModelsSchema = z.strictObject({
  models: rateLimitListSchema.describe('A limit for each model.'),
});

/** Shapes of other systems that an import takes. */
export const foreignSchemas = [
  concurrencyGroupsSchema,
  rateLimitSchema,
  rateLimitListSchema,
  rateLimitModelsSchema,
] as const;

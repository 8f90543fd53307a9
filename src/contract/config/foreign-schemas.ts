import * as z from 'zod';

const text = z.string().trim().min(1).max(200);
const texts = z.array(text).max(200).default([]);
const rate = z.int().min(0).nullable().default(null);

export const concurrencyGroupsSchema = z.strictObject({
  concurrency_groups: z
    .array(
      z.strictObject({
        name: text,
        max_concurrency: z.int().min(0).max(100_000),
        models: texts,
        providers: texts,
      }),
    )
    .max(1_000),
});

export const rateLimitSchema = z.strictObject({
  model: text,
  rate_limit: z.strictObject({ rpm: rate, tpm: rate }),
});
export const rateLimitListSchema = z.array(rateLimitSchema).max(1_000);
export const rateLimitModelsSchema = z.strictObject({ models: rateLimitListSchema });

/** The shapes of other systems that an import takes, for whoever describes them. */
export const foreignSchemas = [
  concurrencyGroupsSchema,
  rateLimitSchema,
  rateLimitListSchema,
  rateLimitModelsSchema,
] as const;

import * as z from 'zod';

const amount = z.number().positive();

export const suggestedLimitsSchema = z
  .object({
    max_concurrency: amount
      .exactOptional()
      .meta({ description: 'Concurrent calls.', unit: 'slots' }),
    rpm: amount.exactOptional().meta({ description: 'Requests per minute.', unit: 'requests' }),
    tpm: amount.exactOptional().meta({ description: 'Tokens per minute.', unit: 'tokens' }),
    itpm: amount.exactOptional().meta({ description: 'Input tokens per minute.', unit: 'tokens' }),
    otpm: amount.exactOptional().meta({ description: 'Output tokens per minute.', unit: 'tokens' }),
    rpd: amount.exactOptional().meta({ description: 'Requests per day.', unit: 'requests' }),
    tpd: amount.exactOptional().meta({ description: 'Tokens per day.', unit: 'tokens' }),
    starts_per_s: amount
      .exactOptional()
      .meta({ description: 'Calls that start per second.', unit: 'calls' }),
  })
  .describe('Limits by their names in the configuration of a group.');

export type SuggestedLimits = Readonly<z.output<typeof suggestedLimitsSchema>>;

export const suggestionSchema = z
  .object({
    plan: z.string().describe('Plan or tier, as named by the provider.'),
    models: z
      .array(z.string())
      .describe(
        'Patterns of the models to which the limits apply, separately to each. Empty means all models.',
      ),
    limits: suggestedLimitsSchema,
    source: z.string().describe('Source of the figures.'),
    date: z.iso.date().describe('Date on which they were last known to be valid.'),
    note: z.string().nullable().describe('Note on the figures. null if there is none.'),
  })
  .describe(
    'Limits that a provider publishes for a plan. Headgate does not apply them automatically.',
  );

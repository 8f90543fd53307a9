import * as z from 'zod';

/** Limits that an operator may take over into a group, and where they are from. */

const amount = z.number().positive();

/** Limits by the names that a group's configuration has for them. */
export const suggestedLimitsSchema = z
  .object({
    max_concurrency: amount
      .exactOptional()
      .meta({ description: 'Calls in flight at once.', unit: 'slots' }),
    rpm: amount.exactOptional().meta({ description: 'Requests per minute.', unit: 'requests' }),
    tpm: amount.exactOptional().meta({ description: 'Tokens per minute.', unit: 'tokens' }),
    itpm: amount.exactOptional().meta({ description: 'Input tokens per minute.', unit: 'tokens' }),
    otpm: amount.exactOptional().meta({ description: 'Output tokens per minute.', unit: 'tokens' }),
    rpd: amount.exactOptional().meta({ description: 'Requests per day.', unit: 'requests' }),
    tpd: amount.exactOptional().meta({ description: 'Tokens per day.', unit: 'tokens' }),
    starts_per_s: amount
      .exactOptional()
      .meta({ description: 'Calls that begin in a second.', unit: 'calls' }),
  })
  .describe('Limits by their names in the configuration of a group.');

export type SuggestedLimits = Readonly<z.output<typeof suggestedLimitsSchema>>;

/** Limits that a provider publishes of one of its plans. */
export const suggestionSchema = z
  .object({
    plan: z.string().describe('The plan, or tier, in the words of the provider.'),
    models: z
      .array(z.string())
      .describe('Globs of the models that they are about, each by itself. Empty: all models.'),
    limits: suggestedLimitsSchema,
    source: z.string().describe('Where the figures were published or copied.'),
    date: z.iso.date().describe('When they were last known to hold.'),
    note: z.string().nullable().describe('What else is known of them. Null: nothing.'),
  })
  .describe('Limits that a provider publishes of a plan. Nothing applies them by itself.');

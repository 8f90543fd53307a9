import * as z from 'zod';
import { hermesSchema } from './hermes-schema.ts';
import { portkeySchema } from './portkey-schema.ts';

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

const cost = z.number().min(0).max(1).nullish();

/** Parameters of a deployment of LiteLLM's. Each other one is left out, and that is reported. */
export const litellmParamsSchema = z.looseObject({
  model: text.describe('Provider and the model there, as in `azure/my-deployment`.'),
  custom_llm_provider: text.nullish().describe('Provider, where `model` names none.'),
  api_base: z
    .url({ protocol: /^https?$/ })
    .nullish()
    .describe('Base URL. Absent: the provider’s.'),
  api_key: z
    .string()
    .max(10_000)
    .nullish()
    .describe('Where its key is: `os.environ/NAME`. A key itself is not imported.'),
  max_parallel_requests: z.int().min(0).max(100_000).nullish().meta({
    description: 'Calls in flight at once. Null: no limit.',
    unit: 'slots',
  }),
  rpm: rate.meta({ description: 'Requests per minute. Null: no limit.', unit: 'requests' }),
  tpm: rate.meta({ description: 'Tokens per minute. Null: no limit.', unit: 'tokens' }),
  weight: z.number().min(0.01).max(1_000).nullish().meta({
    description: 'Its part of the calls.',
    unit: 'parts',
  }),
  order: z.int().nullish().meta({
    description: 'Deployments with the lowest order come first, those without one last.',
    unit: 'order',
  }),
  stream_timeout: z.number().min(0.001).max(3_600).nullish().meta({
    description: 'Maximum time to the first content of a stream.',
    unit: 's',
  }),
  max_budget: z.number().min(0).max(1_000_000_000).nullish().meta({
    description: 'Maximum cost of its calls in `budget_duration`.',
    unit: 'USD',
  }),
  budget_duration: text.nullish().describe('Period of `max_budget`, as in `30d`.'),
  input_cost_per_token: cost.meta({ description: 'Price of input.', unit: 'USD per token' }),
  output_cost_per_token: cost.meta({ description: 'Price of output.', unit: 'USD per token' }),
  cache_read_input_token_cost: cost.meta({
    description: 'Price of input read from a cache.',
    unit: 'USD per token',
  }),
  cache_creation_input_token_cost: cost.meta({
    description: 'Price of input written to a cache.',
    unit: 'USD per token',
  }),
  aws_region_name: text.nullish().describe('Region of Amazon Bedrock.'),
});

/** A list of deployments of LiteLLM's. */
export const modelListSchema = z.looseObject({
  model_list: z
    .array(
      z.looseObject({
        model_name: text.describe(
          'The name by which callers know it; several of one name are one group.',
        ),
        litellm_params: z
          .looseObject(litellmParamsSchema.shape)
          .describe('Where it is, and its limits.'),
      }),
    )
    .min(1)
    .max(1_000)
    .describe('Deployments.'),
});

/** A model of an agent: what else it says is not taken over, and that is told. */
export const agentModelSchema = z.looseObject({
  model_name: text.describe('The name by which it is called; several of one name are one group.'),
  model: text.describe('The model there, with the provider before it unless `provider` says it.'),
  provider: z.string().trim().max(100).optional().describe('Provider. Absent: as `model` says.'),
  api_base: z
    .union([z.literal(''), z.url({ protocol: /^https?$/ })])
    .optional()
    .describe('Base URL. Absent: the provider’s.'),
  api_keys: z
    .array(z.string().max(10_000))
    .max(100)
    .default([])
    .describe('Its keys, which are not taken over.'),
  api_key: z.string().max(10_000).optional().describe('The same where there is one.'),
  rpm: rate.meta({ description: 'Requests per minute. 0: no limit.', unit: 'requests' }),
  enabled: z.boolean().optional().describe('`false`: switched off. Absent: on.'),
  request_timeout: z.number().min(0).optional().meta({
    description: 'Maximum time of a call. 0 means 120 seconds.',
    unit: 's',
  }),
  fallbacks: z.array(text).max(100).default([]).describe('Models that take over, by their names.'),
  auth_method: z.string().max(100).optional().describe('`oauth`, `token`: it signs in by itself.'),
});
export const agentModelListSchema = z.looseObject({
  model_list: z.array(z.unknown()).min(1).max(1_000).describe('Models.'),
  agents: z.unknown().optional().describe('Agents, with the models that they fall back on.'),
});

/** Shapes of other systems that an import takes. */
export const foreignSchemas = [
  concurrencyGroupsSchema,
  rateLimitSchema,
  rateLimitListSchema,
  rateLimitModelsSchema,
  modelListSchema,
  agentModelListSchema.extend({
    model_list: z.array(agentModelSchema).min(1).max(1_000).describe('Models.'),
  }),
  hermesSchema,
  portkeySchema,
] as const;

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
          description: 'Slots: concurrent calls.',
          unit: 'slots',
        }),
        models: texts.describe('Patterns of models.'),
        providers: texts.describe('Ids of upstreams.'),
      }),
    )
    .max(1_000)
    .describe('Groups.'),
});

export const rateLimitSchema = z.strictObject({
  model: text.describe('Model that the limit applies to.'),
  rate_limit: z
    .strictObject({
      rpm: rate.meta({
        description: 'Requests per minute. null means no limit.',
        unit: 'requests',
      }),
      tpm: rate.meta({ description: 'Tokens per minute. null means no limit.', unit: 'tokens' }),
    })
    .describe('Limits of the model.'),
});
export const rateLimitListSchema = z.array(rateLimitSchema).max(1_000);
export const rateLimitModelsSchema = z.strictObject({
  models: rateLimitListSchema.describe('One limit per model.'),
});

const cost = z.number().min(0).max(1).nullish();

/** Parameters of a LiteLLM deployment. The import leaves out all other parameters, and reports them. */
export const litellmParamsSchema = z.looseObject({
  model: text.describe('Provider and the model there, as in `azure/my-deployment`.'),
  custom_llm_provider: text.nullish().describe('Provider, if `model` names none.'),
  api_base: z
    .url({ protocol: /^https?$/ })
    .nullish()
    .describe('Base URL. Defaults to that of the provider.'),
  api_key: z
    .string()
    .max(10_000)
    .nullish()
    .describe('Reference to its key: `os.environ/NAME`. Keys themselves are not imported.'),
  max_parallel_requests: z.int().min(0).max(100_000).nullish().meta({
    description: 'Concurrent calls. null means no limit.',
    unit: 'slots',
  }),
  rpm: rate.meta({ description: 'Requests per minute. null means no limit.', unit: 'requests' }),
  tpm: rate.meta({ description: 'Tokens per minute. null means no limit.', unit: 'tokens' }),
  weight: z.number().min(0.01).max(1_000).nullish().meta({
    description: 'Share of the calls.',
    unit: 'parts',
  }),
  order: z.int().nullish().meta({
    description: 'Deployments with the lowest order get calls first, those without an order last.',
    unit: 'order',
  }),
  stream_timeout: z.number().min(0.001).max(3_600).nullish().meta({
    description: 'Maximum time to the first content of a stream.',
    unit: 's',
  }),
  max_budget: z.number().min(0).max(1_000_000_000).nullish().meta({
    description: 'Maximum cost of its calls per `budget_duration`.',
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

export const modelListSchema = z.looseObject({
  model_list: z
    .array(
      z.looseObject({
        model_name: text.describe(
          'Name that callers use. Deployments with the same name form one group.',
        ),
        litellm_params: z
          .looseObject(litellmParamsSchema.shape)
          .describe('Address and limits of the deployment.'),
      }),
    )
    .min(1)
    .max(1_000)
    .describe('Deployments.'),
});

/** A model of an agent. The import leaves out all other fields, and reports them. */
export const agentModelSchema = z.looseObject({
  model_name: text.describe('Name that callers use. Models with the same name form one group.'),
  model: text.describe(
    'Model at the provider. Its prefix names the provider if `provider` is absent.',
  ),
  provider: z
    .string()
    .trim()
    .max(100)
    .optional()
    .describe('Provider. Defaults to the prefix of `model`.'),
  api_base: z
    .union([z.literal(''), z.url({ protocol: /^https?$/ })])
    .optional()
    .describe('Base URL. Defaults to that of the provider.'),
  api_keys: z
    .array(z.string().max(10_000))
    .max(100)
    .default([])
    .describe('Keys. They are not imported.'),
  api_key: z.string().max(10_000).optional().describe('Key. It is not imported.'),
  rpm: rate.meta({ description: 'Requests per minute. 0 means no limit.', unit: 'requests' }),
  enabled: z.boolean().optional().describe('`false` disables the model.'),
  request_timeout: z.number().min(0).optional().meta({
    description: 'Maximum time of a call. 0 means 120 seconds.',
    unit: 's',
  }),
  fallbacks: z.array(text).max(100).default([]).describe('Names of the fallback models.'),
  auth_method: z
    .string()
    .max(100)
    .optional()
    .describe('`oauth` and `token`: the agent signs in itself.'),
});
export const agentModelListSchema = z.looseObject({
  model_list: z.array(z.unknown()).min(1).max(1_000).describe('Models.'),
  agents: z.unknown().optional().describe('Agents, with their fallback models.'),
});

import * as z from 'zod';

const name = z.string().trim().min(1).max(200);
const slots = z.int().min(1).max(100_000).nullish().meta({
  description: 'Concurrent calls per key. Defaults to what Hermes knows about the model.',
  unit: 'slots',
});

/** Fields that define where calls go, at every level of the file. */
const endpoint = {
  provider: z.string().trim().max(200).nullish().describe('Provider, or the name of an endpoint.'),
  model: z.string().trim().max(200).nullish().describe('Model at the provider.'),
  base_url: z
    .string()
    .trim()
    .max(2_000)
    .nullish()
    .describe('Base URL. Defaults to that of the provider.'),
  api_key: z.string().max(10_000).nullish().describe('Key. It is not imported.'),
  key_env: z.string().trim().max(200).nullish().describe('Environment variable with the key.'),
  api_mode: z.string().trim().max(100).nullish().describe('API of the endpoint.'),
};

export const hermesEndpointSchema = z.looseObject(endpoint);

/** A named endpoint: an entry of the list `custom_providers`, or a value of `providers`. */
export const hermesProviderSchema = z.looseObject({
  ...endpoint,
  name: name.nullish().describe('Name of the endpoint.'),
  max_concurrent: slots,
  rate_limit_delay: z.number().min(0).max(86_400).nullish().meta({
    description: 'Minimum time between the starts of calls.',
    unit: 's',
  }),
  models: z
    .union([
      z.record(name, z.looseObject({ max_concurrent: slots }).nullable()),
      z.array(z.unknown()),
    ])
    .nullish()
    .describe('Models, with their own limits.'),
});

export const hermesCredentialSchema = z.looseObject({
  label: z.string().max(200).nullish().describe('Name of the key.'),
  auth_type: z.string().max(50).nullish().describe('`api_key`, or the kind of sign-in.'),
  source: z.string().max(200).nullish().describe('Source of the key, such as `env:NAME`.'),
  priority: z.number().nullish().describe('Lower priorities are used first.'),
  base_url: endpoint.base_url,
});

export const hermesMainSchema = z.looseObject({
  ...endpoint,
  default: name.nullish().describe('Model at the provider.'),
  max_concurrent: slots,
});

/**
 * The configuration of Hermes Agent: `config.yaml`, the key pools of `auth.json`, or both. The main model is parsed
 * separately, so that a mistake in it does not hide the other parts.
 */
export const hermesPartsSchema = z.looseObject({
  model: z.unknown().optional().describe('The main model.'),
  custom_providers: z.array(z.unknown()).max(200).nullish().describe('Endpoints as a list.'),
  providers: z.record(name, z.unknown()).nullish().describe('Endpoints by name.'),
  fallback_providers: z.array(z.unknown()).max(100).nullish().describe('Fallback models.'),
  fallback_model: z.unknown().optional().describe('Fallback model in older files.'),
  credential_pool: z
    .record(name, z.array(z.unknown()).max(100))
    .nullish()
    .describe('Keys by provider.'),
  credential_pool_strategies: z
    .record(name, z.string())
    .nullish()
    .describe('Rotation strategies of keys, by provider.'),
});

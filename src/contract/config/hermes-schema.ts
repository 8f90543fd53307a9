import * as z from 'zod';

const name = z.string().trim().min(1).max(200);
const slots = z.int().min(1).max(100_000).nullish().meta({
  description: 'Calls in flight at once, for each key. Absent: what Hermes knows of the model.',
  unit: 'slots',
});

/** Fields that say where calls go, wherever they stand. */
const endpoint = {
  provider: z.string().trim().max(200).nullish().describe('Provider, or the name of an endpoint.'),
  model: z.string().trim().max(200).nullish().describe('Model there.'),
  base_url: z.string().trim().max(2_000).nullish().describe('Base URL. Absent: the provider’s.'),
  api_key: z.string().max(10_000).nullish().describe('Key, which is not imported.'),
  key_env: z.string().trim().max(200).nullish().describe('Variable with the key.'),
  api_mode: z.string().trim().max(100).nullish().describe('API that is spoken there.'),
};

export const hermesEndpointSchema = z.looseObject(endpoint);

/** An endpoint that has a name, as `custom_providers` lists it and `providers` holds it by name. */
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
    .describe('Its models, with limits of their own.'),
});

/** A key of a pool. */
export const hermesCredentialSchema = z.looseObject({
  label: z.string().max(200).nullish().describe('Its name.'),
  auth_type: z.string().max(50).nullish().describe('`api_key`, or the kind of a sign-in.'),
  source: z.string().max(200).nullish().describe('Where it comes from, as in `env:NAME`.'),
  priority: z.number().nullish().describe('Lower ones are used first.'),
  base_url: endpoint.base_url,
});

/** The main model. */
export const hermesMainSchema = z.looseObject({
  ...endpoint,
  default: name.nullish().describe('Model there.'),
  max_concurrent: slots,
});

/** The configuration of Hermes Agent: `config.yaml`, with the pools of `auth.json` beside it or alone. */
export const hermesSchema = z.looseObject({
  model: z.union([name, hermesMainSchema]).nullish().describe('The main model.'),
  custom_providers: z.array(z.unknown()).max(200).nullish().describe('Endpoints, in a list.'),
  providers: z.record(name, z.unknown()).nullish().describe('Endpoints, by their names.'),
  fallback_providers: z.array(z.unknown()).max(100).nullish().describe('Models that take over.'),
  fallback_model: z.unknown().optional().describe('The same in older files.'),
  credential_pool: z
    .record(name, z.array(z.unknown()).max(100))
    .nullish()
    .describe('Keys, by provider.'),
  credential_pool_strategies: z
    .record(name, z.string())
    .nullish()
    .describe('Ways in which keys take turns, by provider.'),
});

/** The same with a main model that is still to be read, so that a mistake in it costs no other part. */
export const hermesPartsSchema = hermesSchema.extend({ model: z.unknown().optional() });

import * as z from 'zod';

const name = z.string().trim().min(1).max(200);
const codes = z.array(z.number()).max(100);

export const portkeyConditionSchema = z.looseObject({
  query: z.looseObject({}).describe('Condition on a call.'),
  // oxlint-disable-next-line unicorn/no-thenable -- the field's name there
  then: name.describe('Name of the target.'),
});

const strategySchema = z.looseObject({
  mode: z
    .enum(['single', 'loadbalance', 'fallback', 'conditional'])
    .describe('How a target is chosen.'),
  on_status_codes: codes.optional().describe('Statuses after which the next target is tried.'),
  conditions: z
    .array(z.unknown())
    .max(1_000)
    .optional()
    .describe('Conditions on a call that choose a target.'),
  default: name.optional().describe('Target of calls that match no condition.'),
});

/**
 * A Portkey config, or one of its targets: a provider, or a strategy with its own targets. The converter parses targets
 * and conditions one by one, so that each mistake is reported with its path.
 */
export const portkeyNodeSchema = z.looseObject({
  name: name.optional().describe('Name of the target.'),
  strategy: strategySchema.optional().describe('How calls are distributed among the targets.'),
  targets: z.array(z.unknown()).min(1).max(100).optional().describe('Targets of the calls.'),
  provider: name.optional().describe('Name of the provider, or `@` and the slug of a stored one.'),
  virtual_key: name.optional().describe('Slug of a stored key.'),
  api_key: z.string().max(10_000).optional().describe('Key. It is not imported.'),
  custom_host: name.optional().describe('Base URL. Defaults to that of the provider.'),
  weight: z.number().min(0).optional().describe('Share of the calls. 0 means none.'),
  override_params: z
    .looseObject({ model: name.optional().describe('Model to request.') })
    .optional()
    .describe('Body fields that replace those of the call. Only `model` is imported.'),
  retry: z
    .looseObject({
      attempts: z.int().min(0).meta({ description: 'Number of retries.', unit: 'attempts' }),
      on_status_codes: codes.optional().describe('Statuses after which the call is retried.'),
    })
    .optional()
    .describe('Retries of a call.'),
  request_timeout: z.number().min(0).optional().meta({
    description: 'Maximum wait for an answer before the next target is tried.',
    unit: 'ms',
  }),
});

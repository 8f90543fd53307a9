import * as z from 'zod';

const name = z.string().trim().min(1).max(200);
const codes = z.array(z.number()).max(100);

/** A condition of a strategy. */
export const portkeyConditionSchema = z.looseObject({
  query: z.looseObject({}).describe('Test of a call.'),
  // oxlint-disable-next-line unicorn/no-thenable -- the field's name there
  then: name.describe('Name of the target.'),
});

/** The strategy of a config or of a target of Portkey's. */
const strategySchema = z.looseObject({
  mode: z
    .enum(['single', 'loadbalance', 'fallback', 'conditional'])
    .describe('How one of the targets is chosen.'),
  on_status_codes: codes.optional().describe('Answers after which the next target is tried.'),
  conditions: z.array(z.unknown()).max(1_000).optional().describe('Targets by what a call says.'),
  default: name.optional().describe('Target of calls that meet no condition.'),
});

/**
 * A config of Portkey's, and each of its targets: a provider, or a strategy with targets of its own. The converter reads
 * those, and conditions, one by one, so that each mistake has its path.
 */
export const portkeyNodeSchema = z.looseObject({
  name: name.optional().describe('Name of the target.'),
  strategy: strategySchema.optional().describe('How calls are spread over the targets.'),
  targets: z.array(z.unknown()).min(1).max(100).optional().describe('Where calls go.'),
  provider: name.optional().describe('Name of the provider, or `@` and the slug of a stored one.'),
  virtual_key: name.optional().describe('Slug of a stored key.'),
  api_key: z.string().max(10_000).optional().describe('Key, which is not imported.'),
  custom_host: name.optional().describe('Base URL. Absent: the provider’s.'),
  weight: z.number().min(0).optional().describe('Its part of the calls. 0: none.'),
  override_params: z
    .looseObject({ model: name.optional().describe('Model to ask for.') })
    .optional()
    .describe('Fields of the body that replace those of the call. `model` is taken over.'),
  retry: z
    .looseObject({
      attempts: z.int().min(0).meta({ description: 'Further attempts.', unit: 'attempts' }),
      on_status_codes: codes.optional().describe('Statuses after which the call is retried.'),
    })
    .optional()
    .describe('Retries of a call.'),
  request_timeout: z.number().min(0).optional().meta({
    description: 'Maximum wait for an answer before the next target is tried.',
    unit: 'ms',
  }),
});

/** A config as a whole, which names a strategy and its targets. One of a single provider is taken as well. */
export const portkeySchema = portkeyNodeSchema.extend({
  strategy: strategySchema
    .extend({
      conditions: z
        .array(portkeyConditionSchema)
        .max(1_000)
        .optional()
        .describe('Targets by what a call says.'),
    })
    .describe('How calls are spread over the targets.'),
  targets: z.array(portkeyNodeSchema).min(1).max(100).describe('Where calls go.'),
});

import * as z from 'zod';
import type { Frozen } from './frozen.ts';

/** The calls that a refusal is about, as shown to operators: those with every value that is not null. */
export const callScopeSchema = z
  .object({
    model: z
      .string()
      .nullable()
      .describe('The model, in lower case. Empty: calls that name no model. Null: any model.'),
    service_tier: z
      .string()
      .nullable()
      .describe(
        'The service tier, if it is not the default, in lower case. `unknown`: the body was too large to be read. Null: any tier.',
      ),
    credential: z
      .string()
      .nullable()
      .describe(
        "Fingerprint of a caller's own provider key. A `+` at its end: the call had several keys, one with a scheme other than `Bearer`, or one in no known place. Null: any key.",
      ),
  })
  .describe('The calls that match every value that is not null.');

export type CallScope = Frozen<z.output<typeof callScopeSchema>>;

/** Which values a scope names. A fixed set, so that metrics can have it as a label. */
export type ScopeKind =
  | 'model'
  | 'tier'
  | 'key'
  | 'model_tier'
  | 'model_key'
  | 'tier_key'
  | 'model_tier_key';

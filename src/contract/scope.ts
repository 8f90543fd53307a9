import * as z from 'zod';
import type { Frozen } from './frozen.ts';

/** The calls that a refusal concerns, as shown to operators. */
export const callScopeSchema = z
  .object({
    model: z
      .string()
      .nullable()
      .describe('Model, in lower case. Empty for calls that name no model. null means any.'),
    service_tier: z
      .string()
      .nullable()
      .describe(
        'Service tier in lower case, unless it is the default. `unknown` if the body was too large to read. null means any.',
      ),
    credential: z
      .string()
      .nullable()
      .describe(
        "Fingerprint of a caller's own provider key. It ends with `+` if the call had several keys, a scheme other than `Bearer`, or a key in an unknown place. null means any.",
      ),
  })
  .describe('The calls that match every value that is not null.');

export type ScopeFields = Frozen<z.output<typeof callScopeSchema>>;

/** Kinds of scopes, by the values that they name. The set is fixed, so that metrics can use it as a label. */
export type ScopeKind =
  | 'model'
  | 'tier'
  | 'key'
  | 'model_tier'
  | 'model_key'
  | 'tier_key'
  | 'model_tier_key';

import * as z from 'zod';
import { HOLD_KINDS } from '../core/words/ticket.ts';

/**
 * Small shapes that several others contain: the calls that a refusal concerns, the kind of a holder, a temporary value,
 * a problem, and the limits that a provider publishes.
 */

/** A value of a schema, deeply read-only, because received values are never modified. */
export type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: Frozen<T[Name]> }
    : T;

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

/** Kind of the holder of a slot, or of a waiter. */
export const holdKind = (what: string) =>
  z
    .enum(HOLD_KINDS)
    .exactOptional()
    .describe(
      `${what}: a WebSocket session, a turn on a WebSocket, a lease acquired over HTTP, or a run that continues at its upstream. Absent for calls.`,
    );

/** A field of a group with a temporary value. It reverts automatically. */
export const temporarySchema = z
  .object({
    field: z.string().describe('Path of the field, such as `limits.max_concurrency` or `paused`.'),
    from: z.unknown().optional().describe('Value to which it reverts. Absent if there was none.'),
    to: z.unknown().optional().describe('Temporary value. Absent if the field has none.'),
    until: z.iso.datetime().describe('Time at which it reverts, in UTC.'),
    actor: z.string().describe('Who made the change.'),
  })
  .describe('A field with a temporary value.');

/** A problem as in RFC 9457. */
export const problemSchema = z.object({
  type: z.string().describe('Kind of the problem: `about:blank`.'),
  title: z.string().describe('Short title of the problem.'),
  status: z.int().describe('HTTP status.'),
  detail: z.string().describe('Description of the problem.'),
  errors: z
    .array(
      z.object({
        path: z.string().describe('Path of the field, such as `limits.max_concurrency`.'),
        message: z.string().describe('What is wrong with its value.'),
      }),
    )
    .max(50)
    .optional()
    .describe('The first 50 invalid fields. Absent if the problem is not about fields.'),
  more: z.int().min(0).optional().describe('Number of further invalid fields.'),
  command: z
    .string()
    .optional()
    .describe(
      'Command that fixes the problem, for the environment of this Headgate. Absent if there is none.',
    ),
  afterwards: z.string().optional().describe('What to do after the command, for people.'),
  fault: z
    .string()
    .optional()
    .describe('What is wrong with the secret that the command sets, such as "is not set".'),
});

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

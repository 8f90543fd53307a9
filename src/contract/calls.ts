import * as z from 'zod';
import { LANES } from '../core/words/ticket.ts';
import { holdKind } from './hold-kind.ts';
import { callScopeSchema, type ScopeFields } from './scope.ts';
import { upstreamSaidSchema, waitCauseSchema } from './decisions.ts';
import type { Frozen } from './frozen.ts';

/** Ends of calls that the log tells of; `in_flight`: it has its slots yet, which only the memory of its pool knows. */
export const callOutcomeSchema = z.enum([
  'success',
  'cancelled',
  'failed',
  'refused',
  'expired',
  'rejected',
  'left',
  'in_flight',
]);

/** Reasons for which a call has a line. */
const keptForSchema = z.enum(['refused', 'retried', 'slow', 'cost', 'sample', 'recent']);

const tokens = (of: string) =>
  z
    .number()
    .min(0)
    .nullable()
    .meta({
      description: `${of} tokens, as limits count them. Null: nobody counted.`,
      unit: 'tokens',
    });
const ms = z.number().min(0).nullable();

/** A call in one of its groups, once it was over there. */
export const callLineSchema = z.object({
  kind: holdKind('What it was'),
  at: z.iso.datetime().describe('When its pool heard that it was over.'),
  lease: z.string().describe('Id of the lease, as in the header `headgate-lease`.'),
  tenant: z.string().describe('The tenant that it was charged to.'),
  agent: z.string().nullable().describe('The agent run. Null: it belonged to none.'),
  key: z.string().describe('Id of the gateway key, or the fingerprint of the provider key.'),
  upstream: z.string().describe('The upstream that it went to.'),
  member: z.string().nullable().describe('The member. Null: none, or the group names none.'),
  model: z.string().nullable().describe('The model. Null: not known.'),
  lane: z.enum(LANES).describe('The lane.'),
  slots: z.number().meta({ description: 'Slots that it asked for.', unit: 'slots' }),
  attempt: z.int().describe('Number of the attempt of the call in this group; 1 is the first.'),
  waited_ms: ms.meta({
    description: 'How long it waited here. Null: an instance before knows.',
    unit: 'ms',
  }),
  waited_for: waitCauseSchema.nullable().describe('What it waited for. Null: it did not.'),
  scope: callScopeSchema
    .nullable()
    .describe(
      'The calls that this cause held. null if it held all calls, or the call did not wait.',
    ),
  held_ms: ms.meta({ description: 'How long it held its slots. Null: it had none.', unit: 'ms' }),
  outcome: callOutcomeSchema.describe(
    '`rejected`: the group refused it; `left`: its caller went while it waited; `refused`, `failed`: its upstream did; `expired`: nobody was heard of it.',
  ),
  rejection: z.string().nullable().describe('Why the group refused it. Null: it did not.'),
  upstream_status: z.int().nullable().describe('Status of the answer. Null: none was told.'),
  upstream_said: upstreamSaidSchema
    .nullable()
    .describe('The meaning of that answer, as in a decision. Null: nothing was told.'),
  upstream_request_id: z
    .string()
    .nullable()
    .describe("The upstream's own id of it, by which its support finds it. Null: it named none."),
  sent: z
    .int()
    .nullable()
    .describe('How often it was sent to upstreams by then. Null: it was not, as far as is known.'),
  input_tokens: tokens('Input'),
  output_tokens: tokens('Output'),
  cost_usd: z.number().min(0).nullable().meta({
    description: 'What it cost, as budgets count it. Null: nobody counted.',
    unit: 'USD',
  }),
  kept_for: keptForSchema.describe(
    'Why there is a line: the first that fits. `recent`: there is none; its pool remembers it.',
  ),
});

/** A line as a pool tells it: what is null is absent, and `at` in epoch milliseconds. It is stored so. */
export interface StoredCall {
  readonly at: number;
  readonly lease: string;
  readonly tenant: string;
  readonly key: string;
  readonly upstream: string;
  readonly outcome: CallLogLine['outcome'];
  readonly kept_for: CallLogLine['kept_for'];
  readonly kind?: NonNullable<CallLogLine['kind']>;
  readonly agent?: string;
  readonly member?: string;
  readonly model?: string;
  /** Absent: `normal`. */
  readonly lane?: CallLogLine['lane'];
  /** Absent: 1. */
  readonly slots?: number;
  readonly waited_ms?: number;
  readonly waited_for?: NonNullable<CallLogLine['waited_for']>;
  readonly scope?: ScopeFields;
  readonly held_ms?: number;
  readonly rejection?: string;
  readonly upstream_status?: number;
  readonly upstream_said?: NonNullable<CallLogLine['upstream_said']>;
  readonly upstream_request_id?: string;
  readonly sent?: number;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly cost_usd?: number;
}

type CallLogLine = Frozen<z.output<typeof callLineSchema>>;

/** Which calls are looked for; what is absent bounds nothing. */
export interface CallQuery {
  /** Over at this instant or later, and before that one; epoch milliseconds. */
  readonly fromMs: number;
  readonly toMs: number;
  /** One of these is its lease, its ticket, its agent, tenant, key, model, or the upstream's id of it. */
  readonly anyOf?: readonly string[];
  /** Leases or tickets. */
  readonly leases?: readonly string[];
  readonly agent?: string;
  readonly tenant?: string;
  readonly key?: string;
  readonly model?: string;
  readonly requestId?: string;
  readonly outcome?: CallLogLine['outcome'];
  /** About how many are wanted; those of one instant come together. */
  readonly limit: number;
}

/** The finds of one pool. */
export interface CallsFound {
  /** The latest first. */
  readonly calls: readonly StoredCall[];
  /** All that fit and were over at this instant or later are among them: epoch milliseconds. */
  readonly doneTo: number;
}

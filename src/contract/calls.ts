import * as z from 'zod';
import { LANES } from '../core/words/ticket.ts';
import { holdKind, callScopeSchema, type ScopeFields, type Frozen } from './shared-shapes.ts';
import { upstreamSaidSchema, waitCauseSchema } from './decisions.ts';

/** Outcomes of calls in the log. `in_flight` means that the call still holds slots. It is only in its pool's memory. */
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

const keptForSchema = z.enum(['refused', 'retried', 'slow', 'cost', 'sample', 'recent']);

const tokens = (of: string) =>
  z
    .number()
    .min(0)
    .nullable()
    .meta({
      description: `${of} tokens, as limits count them. null if they were not counted.`,
      unit: 'tokens',
    });
const ms = z.number().min(0).nullable();

/** A call in one of its groups, after it ended there. */
export const callLineSchema = z.object({
  kind: holdKind('Kind of the holder'),
  at: z.iso.datetime().describe('Time at which its end was reported to the pool.'),
  lease: z.string().describe('Id of the lease, as in the header `headgate-lease`.'),
  tenant: z.string().describe('Tenant that it was charged to.'),
  agent: z.string().nullable().describe('Agent run. null if there is none.'),
  key: z.string().describe('Id of the gateway key, or fingerprint of the provider key.'),
  upstream: z.string().describe('Upstream of the call.'),
  member: z
    .string()
    .nullable()
    .describe('Member. null if it ran at none, or the group has no members.'),
  model: z.string().nullable().describe('Model. null if it is unknown.'),
  lane: z.enum(LANES).describe('Lane of the call.'),
  slots: z.number().meta({ description: 'Requested slots.', unit: 'slots' }),
  attempt: z.int().describe('Number of the attempt of the call in this group, beginning with 1.'),
  waited_ms: ms.meta({
    description: 'Wait in this group. null if an earlier instance of the pool measured it.',
    unit: 'ms',
  }),
  waited_for: waitCauseSchema.nullable().describe('Wait reason. null if it did not wait.'),
  scope: callScopeSchema
    .nullable()
    .describe(
      'Calls to which this reason applied. null if it applied to all calls, or the call did not wait.',
    ),
  held_ms: ms.meta({
    description: 'Time for which it held its slots. null if it held none.',
    unit: 'ms',
  }),
  outcome: callOutcomeSchema.describe(
    '`success`: the upstream served it. `cancelled`: its caller disconnected, or Headgate cut it. `failed`, `refused`: the upstream failed, or refused it. `expired`: its end was never reported. `rejected`: the group rejected it. `left`: its caller disconnected while it was queued. `in_flight`: it still holds slots.',
  ),
  rejection: z
    .string()
    .nullable()
    .describe('Reason of the rejection. null if the group did not reject it.'),
  upstream_status: z
    .int()
    .nullable()
    .describe('Status of the response. null if none was reported.'),
  upstream_said: upstreamSaidSchema
    .nullable()
    .describe('Meaning of the response, as in a decision. null if none was reported.'),
  upstream_request_id: z
    .string()
    .nullable()
    .describe(
      "The upstream's id of the request, for its support. null if the upstream returned none.",
    ),
  sent: z
    .int()
    .nullable()
    .describe(
      'Number of times that the call was sent to upstreams until then. null if it was not sent, or the number is unknown.',
    ),
  input_tokens: tokens('Input'),
  output_tokens: tokens('Output'),
  cost_usd: z.number().min(0).nullable().meta({
    description: 'Cost, as budgets count it. null if it was not counted.',
    unit: 'USD',
  }),
  kept_for: keptForSchema.describe(
    'Why it was logged: the first rule that applied. `recent`: it is not logged, but still in the memory of its pool.',
  ),
});

/** A logged call as a pool stores and sends it. Null fields are omitted, and `at` is in epoch milliseconds. */
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
  /** Absent means `normal`. */
  readonly lane?: CallLogLine['lane'];
  /** Absent means 1. */
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

/** Selects calls. Absent fields do not restrict. */
export interface CallQuery {
  /** The call ended at or after `fromMs`, and before `toMs`. Epoch milliseconds. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Matches any of: lease, ticket, agent, tenant, key, model, or the upstream's id of the request. */
  readonly anyOf?: readonly string[];
  /** Lease ids or tickets. */
  readonly leases?: readonly string[];
  readonly agent?: string;
  readonly tenant?: string;
  readonly key?: string;
  readonly model?: string;
  readonly requestId?: string;
  readonly outcome?: CallLogLine['outcome'];
  /** Approximate maximum. Calls with the same `at` are returned together. */
  readonly limit: number;
}

export interface CallsFound {
  /** The latest calls first. */
  readonly calls: readonly StoredCall[];
  /** The result is complete for calls that ended at or after this time. Epoch milliseconds. */
  readonly doneTo: number;
}

import * as z from 'zod';
import { callScopeSchema, type Frozen } from './shared-shapes.ts';
import { ATTENTION_RULES } from './status-words.ts';
import { REASON_NAMES } from './reasons.ts';

/** Conditions that need an operator: the warnings of pools, and the attention list of all groups. */

/**
 * - `near_limit`: the share `warn_at` of the limit was in use for a minute.
 * - `queue_growing`: the queue was longer at the end of each of the last minutes.
 * - `wait_long`: calls wait longer than `warn_wait_ms`.
 * - `breaker_open`: too many calls failed at the upstream, so the breaker stops all calls, or those of a `scope`.
 * - `pause_long`: the upstream asked for a wait of more than 15 minutes, for all calls or those of a `scope`.
 * - `quota_exhausted`: the upstream reports that the account has no quota left.
 * - `egress_refused`: the upstream, or its edge, refuses calls from the Worker's location.
 * - `member_out`: a member gets no calls, because its upstream refuses its key, its account or the Worker's location.
 * - `lease_expired`: a lease expired because its holder was gone.
 * - `budget_near`: half, or 80 %, of a budget is spent.
 * - `budget_spent`: a budget is spent, or the rest did not cover a call.
 * - `day_limit_near`: half, or 80 %, of a daily limit of requests or tokens is used.
 * - `day_limit_spent`: a daily limit of requests or tokens is used up.
 * - `invariant_violated`: Headgate violated one of its own invariants, because of a bug.
 */
export const WARNING_KINDS = [
  'near_limit',
  'queue_growing',
  'wait_long',
  'breaker_open',
  'pause_long',
  'quota_exhausted',
  'egress_refused',
  'member_out',
  'lease_expired',
  'budget_near',
  'budget_spent',
  'day_limit_near',
  'day_limit_spent',
  'invariant_violated',
] as const;

/** A condition of a pool that an operator should check. Never contains a key or a part of a prompt. */
export const warningSchema = z.object({
  id: z.string().describe('Id of the warning, the same in all channels.'),
  at: z.iso.datetime().describe('Time at which it was raised.'),
  kind: z.enum(WARNING_KINDS).describe('Kind of the warning, as in docs/metrics.md.'),
  group: z.string().describe('Name of the group.'),
  partition: z.string().nullable().describe('Partition. null if the group is not split.'),
  member: z
    .string()
    .exactOptional()
    .describe('Member that it concerns. Absent if it concerns the whole pool.'),
  scope: callScopeSchema
    .exactOptional()
    .describe(
      'Calls to which the warning applies. Absent if it applies to all calls of the pool or member.',
    ),
  cleared_at: z.iso
    .datetime()
    .exactOptional()
    .describe(
      'Time at which the condition ended, because the member was restored. Absent if it has not ended, or its end was not reported.',
    ),
  message: z.string().describe('Message for people.'),
  figures: z.record(z.string(), z.number()).describe('Figures of the condition, by name.'),
});

export type Warning = Frozen<z.output<typeof warningSchema>>;
export type WarningKind = Warning['kind'];

/** The part of a warning that describes the condition. */
export type Raised = Pick<Warning, 'kind' | 'member' | 'scope' | 'message' | 'figures'>;

/** Time without a served call, while calls fail, after which `nothing_served` applies. */
export const NOTHING_SERVED_MS = 300_000;

export const ATTENTION_MAX = 500;

const attentionRule = z.enum(ATTENTION_RULES);

const attentionSchema = z
  .object({
    rule: attentionRule.describe('Rule of the condition, as in docs/alerts.md.'),
    subject: z
      .object({
        kind: z
          .enum(['group', 'key', 'team', 'upstream', 'deployment', 'member'])
          .describe('Kind of the subject.'),
        id: z
          .string()
          .describe(
            'Name or id of the subject. For the deployment, the affected part, such as `configuration`.',
          ),
      })
      .describe('Subject of the condition.'),
    reason: z
      .enum(REASON_NAMES)
      .exactOptional()
      .describe('Why Headgate rejects the calls. Absent if the entry is not about one reason.'),
    group: z.string().nullable().describe('Affected group. null if there is none.'),
    since: z.iso.datetime().nullable().describe('Start of the condition. null if it is unknown.'),
    count: z
      .int()
      .min(0)
      .nullable()
      .describe(
        'Number of affected calls, rejections or slots. null if there is nothing to count.',
      ),
    says: z.string().describe('One sentence: the cause, then its effect.'),
    words: z
      .string()
      .nullable()
      .describe(
        'Message of the upstream, or of the error that callers received, shortened and without secrets. null if there is none.',
      ),
    advice: z.string().describe('How to fix it.'),
  })
  .describe('A condition that needs an operator.');

export const attentionListSchema = z.object({
  at: z.iso.datetime().describe('Time at which the list was computed.'),
  version: z.int().min(0).describe('Version of the configuration.'),
  attention: z
    .array(attentionSchema)
    .max(ATTENTION_MAX)
    .describe('Open conditions, the worst first.'),
  left_out: z.int().min(0).describe('Number of entries beyond the first 500.'),
});

export type Attention = Frozen<z.output<typeof attentionSchema>>;

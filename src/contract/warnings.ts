import * as z from 'zod';
import type { Frozen } from './frozen.ts';
import { callScopeSchema } from './scope.ts';

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

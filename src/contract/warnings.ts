import * as z from 'zod';
import type { Frozen } from './frozen.ts';
import { callScopeSchema } from './scope.ts';

/**
 * - `near_limit`: the part `warn_at` of the limit was in use for a minute.
 * - `queue_growing`: the queue was longer at the end of each of the last minutes.
 * - `wait_long`: calls wait longer than `warn_wait_ms`.
 * - `breaker_open`: too many calls failed at the upstream, so the breaker stops them; with a `scope`, only some calls.
 * - `pause_long`: the upstream asked for a wait of more than 15 minutes, for all calls or those of a `scope`.
 * - `quota_exhausted`: the upstream says that the account has nothing left.
 * - `egress_refused`: the upstream, or the edge before it, serves nobody from where the Worker calls.
 * - `member_out`: a member gets no calls, because its upstream refuses its key, its account or where the Worker calls from.
 * - `lease_expired`: a lease was taken back at its TTL, because its holder was gone.
 * - `budget_near`: half, or 80 %, of a budget is spent.
 * - `budget_spent`: a budget is spent, or a call did not fit into what is left of it.
 * - `day_limit_near`: half, or 80 %, of a limit of requests or tokens a day is used.
 * - `day_limit_spent`: a limit of requests or tokens a day is used up.
 * - `invariant_violated`: Headgate broke one of its own promises, by a mistake in it.
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

/** Something in a pool that an operator had better look at. Never holds a key or a word of a prompt. */
export const warningSchema = z.object({
  id: z.string().describe('Id of the warning, the same wherever it is told.'),
  at: z.iso.datetime().describe('When it was raised.'),
  kind: z.enum(WARNING_KINDS).describe('Kind of the warning, as in docs/metrics.md.'),
  group: z.string().describe('The group.'),
  partition: z.string().nullable().describe('The partition. Null: the group is not split.'),
  member: z
    .string()
    .exactOptional()
    .describe('The member that it is about. Absent: it is about the whole pool.'),
  scope: callScopeSchema
    .exactOptional()
    .describe(
      'The calls that the warning applies to. Absent if it applies to all calls of the pool or member.',
    ),
  cleared_at: z.iso
    .datetime()
    .exactOptional()
    .describe('When it was over: the member was brought back. Absent: not yet, or never told.'),
  message: z.string().describe('A sentence for people.'),
  figures: z.record(z.string(), z.number()).describe('The numbers behind it, by name.'),
});

export type Warning = Frozen<z.output<typeof warningSchema>>;
export type WarningKind = Warning['kind'];

/** The part of a warning that says what there is to say. */
export type Raised = Pick<Warning, 'kind' | 'member' | 'scope' | 'message' | 'figures'>;

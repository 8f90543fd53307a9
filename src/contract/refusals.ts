import * as z from 'zod';
import type { Frozen } from './frozen.ts';
import { REASONS, type Reason } from './reasons.ts';

/** All reasons, in the order of `reasons.ts`. The cast is sound because the record has exactly the reasons as keys. */
export const REASON_NAMES = Object.keys(REASONS) as [Reason, ...Reason[]];

/** Time for which the directory keeps the counts of rejected calls. */
export const REFUSALS_KEPT_MS = 3_600_000;

/** Maximum time that one count covers. */
export const REFUSAL_MINUTE_MS = 60_000;

const name = (description: string) => z.string().nullable().describe(description);

/** Rejections by Headgate with the same facts, over a minute or longer. */
export const refusalCountSchema = z.object({
  reason: z.enum(REASON_NAMES).describe('Reason, as in the header `headgate-reason`.'),
  key: name(
    'Id of the gateway key, or fingerprint of the provider key. null if the call had none, or there are too many to list.',
  ),
  key_kind: z
    .enum(['gateway', 'provider'])
    .nullable()
    .describe('Kind of `key`. null if `key` is null.'),
  team: name('Team of the gateway key. null if there is none, or it is unknown.'),
  group: name(
    'Group that rejected the call, or that it belongs to. null if there is none, or it is unknown.',
  ),
  upstream: name('Upstream of the call. null if it is unknown, or not configured.'),
  model: name(
    'Model that the call names. null if there is none, it was not read, or there are too many to list.',
  ),
  count: z.int().positive().describe('Number of rejected calls.'),
  first_at: z.iso.datetime().describe('Time of the first one.'),
  last_at: z.iso.datetime().describe('Time of the last one.'),
  message: z.string().describe('Error message of one of them, without secrets.'),
  request_ids: z
    .array(z.string())
    .describe(
      'Ids of the latest requests, from the header `x-request-id` or `x-client-request-id` of the caller, or from `cf-ray`.',
    ),
});

export type RefusalCount = Frozen<z.output<typeof refusalCountSchema>>;

/** Rejections since counting began, for metrics. It contains no texts that callers choose. */
export type RefusalTotal = Pick<
  RefusalCount,
  'reason' | 'key' | 'team' | 'group' | 'upstream' | 'count'
>;

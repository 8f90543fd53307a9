import * as z from 'zod';
import type { Frozen } from './frozen.ts';
import { REASONS, type Reason } from './reasons.ts';

/** Every reason, in the order of `reasons.ts`. The cast is sound: the record has each reason, and nothing else. */
export const REASON_NAMES = Object.keys(REASONS) as [Reason, ...Reason[]];

/** Time for which the directory keeps the sums of refused calls, in milliseconds. */
export const REFUSALS_KEPT_MS = 3_600_000;

/** Length of time that one sum covers at most. */
export const REFUSAL_MINUTE_MS = 60_000;

const name = (of: string) => z.string().nullable().describe(of);

/** Refusals of Headgate's own with the same facts, of one minute or longer. */
export const refusalCountSchema = z.object({
  reason: z.enum(REASON_NAMES).describe('The reason, as in the header `headgate-reason`.'),
  key: name(
    'Id of the gateway key, or the fingerprint of the provider key. null: the call had none, or there are too many to list.',
  ),
  key_kind: z
    .enum(['gateway', 'provider'])
    .nullable()
    .describe('Kind of `key`. null if `key` is null.'),
  team: name('The team of the gateway key. null: none, or not known.'),
  group: name('The group that refused the call, or that it belongs to. null: none, or not known.'),
  upstream: name('The upstream of the call. null: not known, or not configured.'),
  model: name(
    'The model that the call names. null: none, not read, or there are too many to list.',
  ),
  count: z.int().positive().describe('Number of refused calls.'),
  first_at: z.iso.datetime().describe('Time of the first one.'),
  last_at: z.iso.datetime().describe('Time of the last one.'),
  message: z.string().describe('The error message of one of them, without secrets.'),
  request_ids: z
    .array(z.string())
    .describe(
      'Ids of the latest requests, as their callers sent them in `x-request-id` or `x-client-request-id`, or Cloudflare in `cf-ray`.',
    ),
});

/** Refused calls with the same facts. */
export type RefusalCount = Frozen<z.output<typeof refusalCountSchema>>;

/** Refusals since they were first counted, for metrics: without texts that callers choose. */
export type RefusalTotal = Pick<
  RefusalCount,
  'reason' | 'key' | 'team' | 'group' | 'upstream' | 'count'
>;

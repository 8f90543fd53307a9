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

/** Advice for operators on each reason: what to check or change so that such calls are served. */
export const REFUSAL_ADVICE: Readonly<Record<Reason, string>> = {
  queue_full: 'Raise `queue.max_length` or the slots of the group, or send fewer concurrent calls.',
  queue_timeout:
    'Raise the slots or `queue.timeout_ms` of the group, or send fewer concurrent calls.',
  busy: 'Allow the calls to queue (`headgate-max-wait`, `queue.timeout_ms`), or raise the slots of the group.',
  infeasible:
    'Allow the calls to wait longer, raise the slots of the group, or send fewer concurrent calls.',
  paused:
    'Resume the group if an operator paused it. If the upstream is overloaded, wait or add a fallback.',
  upstream_limited: "Wait for the upstream's limit to end, raise it there, or add a fallback.",
  draining: 'Resume the group, or send the calls to another group.',
  cancelled: 'No action needed. An operator canceled the calls.',
  nested: 'Raise the slots of the group, or move nested calls to another group.',
  never_fits: 'Make the calls smaller, or raise the limit that the message names.',
  breaker_open:
    'Find out why calls fail at the upstream. The breaker closes when a probe succeeds.',
  members_out: 'Check the keys and quotas of the members, and enable those that are disabled.',
  budget_exhausted: 'Raise the budget, or wait for its next period.',
  price_unknown:
    'Set `prices` of the upstream, or `limits.budget_usd.fallback_price` of the group.',
  too_many_groups: 'Change `match` of the groups so that a call matches fewer of them.',
  limiter_unavailable: 'Check the status of Cloudflare and the log. Callers retry automatically.',
  limiter_overloaded: 'Split the group (`partition_by`), or send fewer concurrent calls.',
  account_capped: 'Raise the spending cap of the Cloudflare account.',
  too_many_bytes_waiting:
    'Raise `BODY_MEMORY_MIB` or the slots of the group, or send smaller calls.',
  upstream_unreachable: 'Check `base_url` and the state of the upstream.',
  upstream_redirects:
    'Set `base_url` to the host that the upstream redirects to, or set `redirects: pass`.',
  secret_missing: 'Set the secret that the message names.',
  setting_invalid: 'Correct the variable that the message names, and redeploy.',
  upstream_unknown: 'Correct the base URL of the client, or add the upstream.',
  model_unknown: 'Correct the model in the client, or add it to `models` of an upstream.',
  model_ambiguous: 'Name the upstream in the client (`headgate-upstream`, or its path).',
  body_unreadable: 'Correct the request body in the client, as the message describes.',
  request_timeout:
    'Check the connection of the client, or change `holds.stalled_ms` or `holds.upload_min_bytes_per_s`.',
  key_missing:
    'Give the caller a gateway key. At an upstream without a stored secret, `require_key: false` also allows calls without one.',
  key_invalid: 'Give the caller a valid gateway key. This one is unknown, expired or revoked.',
  key_forbidden: 'Add the group to `groups` of the key, or the operation to `allow`.',
  header_invalid: 'Correct the header in the client, as the message describes.',
  websocket_unsupported: 'Set `websocket: session` at the upstream, or use HTTP.',
  too_many_connections:
    'Close unused connections, or raise `turn_connections_each` of the upstream.',
  http_required: 'Use HTTP, or set `websocket: turns` at the upstream.',
  field_invalid: 'Correct the request in the client, as the message describes.',
  group_unknown: 'Correct the name of the group in the client, or create the group.',
  method_unknown: 'Correct the method or the URL in the client.',
  route_unknown: 'Correct the URL in the client.',
  origin_forbidden: 'Add the origin of the page to `cors_origins`, if you trust it.',
  content_type_unsupported: 'Send `Content-Type: application/json`.',
  host_unknown: 'Start Headgate with `--allow-host`, or use localhost.',
  lease_unknown: 'Send the lease token exactly as it was returned, with the same key.',
  lease_gone: 'Renew leases within `renew_within_ms` of the response.',
  lease_revoked: 'No action needed. An operator revoked the lease.',
  hold_exceeded: 'Release leases sooner, or raise `holds.max_hold_ms` of the group.',
  internal: 'Report this bug of Headgate with the log line `internal_error`.',
};

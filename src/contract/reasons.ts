import * as z from 'zod';
import type { Rejection } from '../core/words/outcome.ts';
import type { Frozen } from './shared-shapes.ts';

/**
 * Why Headgate rejects calls: each reason with its status and the advice for operators, and the counts of rejected
 * calls and of calls without a gateway key.
 */

/** The machine-readable reason of a rejection by Headgate: the value of `headgate-reason`. */
export type Reason =
  | Rejection['reason']
  | 'limiter_unavailable'
  | 'limiter_overloaded'
  | 'account_capped'
  | 'too_many_bytes_waiting'
  | 'price_unknown'
  | 'too_many_groups'
  | 'upstream_unreachable'
  | 'upstream_redirects'
  | 'secret_missing'
  | 'setting_invalid'
  | 'upstream_unknown'
  | 'model_unknown'
  | 'model_ambiguous'
  | 'body_unreadable'
  | 'request_timeout'
  | 'key_missing'
  | 'key_invalid'
  | 'key_forbidden'
  | 'header_invalid'
  | 'websocket_unsupported'
  | 'too_many_connections'
  | 'http_required'
  | 'field_invalid'
  | 'group_unknown'
  | 'method_unknown'
  | 'route_unknown'
  | 'origin_forbidden'
  | 'content_type_unsupported'
  | 'host_unknown'
  | 'lease_unknown'
  | 'lease_gone'
  | 'lease_revoked'
  | 'hold_exceeded'
  | 'internal';

interface ReasonShape {
  readonly status: number;
  /** No retry of the same call can succeed. Such a reason never has a 429 or 5xx status, because SDKs retry those. */
  readonly permanent: boolean;
}

export const REASONS: Record<Reason, ReasonShape> = {
  queue_full: { status: 429, permanent: false },
  queue_timeout: { status: 429, permanent: false },
  busy: { status: 429, permanent: false },
  infeasible: { status: 429, permanent: false },
  paused: { status: 503, permanent: false },
  upstream_limited: { status: 429, permanent: false },
  draining: { status: 503, permanent: false },
  cancelled: { status: 409, permanent: true },
  nested: { status: 409, permanent: true },
  never_fits: { status: 413, permanent: true },
  breaker_open: { status: 503, permanent: false },
  members_out: { status: 503, permanent: false },
  budget_exhausted: { status: 402, permanent: true },
  price_unknown: { status: 400, permanent: true },
  too_many_groups: { status: 400, permanent: true },
  limiter_unavailable: { status: 503, permanent: false },
  limiter_overloaded: { status: 503, permanent: false },
  // The owner of the account must act first, and clients retry any 5xx.
  account_capped: { status: 424, permanent: true },
  too_many_bytes_waiting: { status: 503, permanent: false },
  upstream_unreachable: { status: 502, permanent: false },
  upstream_redirects: { status: 502, permanent: false },
  // An operator must act first, and clients retry any 5xx.
  secret_missing: { status: 424, permanent: true },
  setting_invalid: { status: 424, permanent: true },
  upstream_unknown: { status: 404, permanent: true },
  model_unknown: { status: 404, permanent: true },
  model_ambiguous: { status: 400, permanent: true },
  body_unreadable: { status: 400, permanent: true },
  // Official SDKs retry a 408 automatically.
  request_timeout: { status: 408, permanent: false },
  key_missing: { status: 401, permanent: true },
  key_invalid: { status: 401, permanent: true },
  key_forbidden: { status: 403, permanent: true },
  header_invalid: { status: 400, permanent: true },
  websocket_unsupported: { status: 501, permanent: true },
  too_many_connections: { status: 429, permanent: false },
  http_required: { status: 426, permanent: true },
  field_invalid: { status: 400, permanent: true },
  group_unknown: { status: 404, permanent: true },
  method_unknown: { status: 405, permanent: true },
  route_unknown: { status: 404, permanent: true },
  origin_forbidden: { status: 403, permanent: true },
  content_type_unsupported: { status: 415, permanent: true },
  host_unknown: { status: 421, permanent: true },
  lease_unknown: { status: 404, permanent: true },
  lease_gone: { status: 410, permanent: true },
  lease_revoked: { status: 410, permanent: true },
  hold_exceeded: { status: 410, permanent: true },
  internal: { status: 500, permanent: false },
};

/** An error of Headgate's own, before it is written in the caller's dialect. */
export interface ErrorReply {
  readonly reason: Reason;
  /** Full sentences for people: what happened, why, and what to do. Never contains a secret. */
  readonly message: string;
  readonly retryAfterMs?: number;
  /** The duration of the cause is unknown. */
  readonly isUnforeseen?: boolean;
  /** Overrides the reason: a retry will not help for a long time. */
  readonly isPermanent?: boolean;
  /** Time after which a retry may succeed, for callers that can wait long. */
  readonly endsInMs?: number;
  readonly attempts?: number;
  /** Facts about the rejected call that only its error has, for the count of rejections. Not sent to callers. */
  readonly about?: {
    readonly key?: { readonly id: string; readonly team?: string | null };
    readonly group?: string;
    readonly upstream?: string;
  };
  /** Methods that the route serves, sent as `Allow`. Absent if the error does not concern the method. */
  readonly allow?: readonly string[];
}

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

/** Time for which callers without a gateway key are listed, in milliseconds. */
export const KEYLESS_KEPT_MS = 3_600_000;

/** Served calls of a caller without a gateway key at an upstream. */
export const keylessCallerSchema = z.object({
  upstream: z.string().describe('Id of the upstream.'),
  caller: z
    .string()
    .nullable()
    .describe(
      'Fingerprint of the provider key, or `anonymous` if there is no key. null sums up the callers that are not listed.',
    ),
  calls: z.int().positive().describe('Number of served calls.'),
  last_at: z.iso.datetime().describe('Time of the last one.'),
});

export type KeylessCaller = Frozen<z.output<typeof keylessCallerSchema>>;

import type { Rejection } from '../core/words/outcome.ts';

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

// Words that are values of labels. A word that is missing here does not compile.
import type { CutReason, LeaseOutcome, Rejection } from '../../../src/core/words/outcome.ts';
import type { RefusalKind } from '../../../src/core/words/signal.ts';

export const REFUSAL_KINDS: Record<RefusalKind, true> = {
  egress: true,
  unauthorized: true,
  quota: true,
  never_fits: true,
  long_window: true,
  concurrency: true,
  overload: true,
  tokens: true,
  requests: true,
  ramp: true,
  unknown: true,
  error: true,
};

export const REJECTIONS: Record<Rejection['reason'], true> = {
  queue_full: true,
  queue_timeout: true,
  infeasible: true,
  busy: true,
  paused: true,
  upstream_limited: true,
  breaker_open: true,
  members_out: true,
  budget_exhausted: true,
  draining: true,
  cancelled: true,
  nested: true,
  never_fits: true,
};

export const OUTCOMES: Record<LeaseOutcome, true> = {
  success: true,
  cancelled: true,
  failed: true,
  refused: true,
  unused: true,
};

export const CUTS: Record<CutReason, true> = {
  left: true,
  body: true,
  revoked: true,
  idle: true,
  slow: true,
  stalled: true,
  request_timeout: true,
  max_hold: true,
  slow_reader: true,
  overfull: true,
  draining: true,
  key_invalid: true,
  key_forbidden: true,
  group_changed: true,
  upstream_closed: true,
  other_model: true,
  message_unreadable: true,
  message_refused: true,
  restart: true,
};

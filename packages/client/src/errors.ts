/** Reasons of the client itself. All other reasons are values of Headgate's header `headgate-reason`. */
type OwnReason =
  /** No response arrived, or an intermediary returned an error. */
  | 'unreachable'
  /** The lease expired because no renewal succeeded in time. */
  | 'lease_lost'
  /** The response is not from Headgate. */
  | 'not_understood';

interface Details {
  readonly status?: number;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/**
 * An error that Headgate returned, or a failure to reach it. Errors of the work are thrown unchanged, unless the lease
 * was lost. Then they are its `cause`.
 */
export class HeadgateError extends Error {
  override readonly name = 'HeadgateError';
  /** Machine-readable reason, such as `queue_timeout`. */
  readonly reason: string;
  /** HTTP status of the response. null if there was no response. */
  readonly status: number | null;
  /** Milliseconds after which a retry may succeed. null if unknown. */
  readonly retryAfterMs: number | null;

  constructor(reason: OwnReason | (string & {}), message: string, details: Details = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : {});
    this.reason = reason;
    this.status = details.status ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
  }
}

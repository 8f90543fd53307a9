/** Reasons that the client itself gives; all others are Headgate's own, as its `headgate-reason` names them. */
type OwnReason =
  /** No answer of Headgate came, or one of something else on the way to it. */
  | 'unreachable'
  /** The lease ended because nothing could renew it in time. */
  | 'lease_lost'
  /** Something that is no Headgate answered. */
  | 'not_understood';

/** Everything by which `instanceof` is not enough. */
interface Details {
  readonly status?: number;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** An error of Headgate, or of the way to it. Never one of the work that runs under a lease. */
export class HeadgateError extends Error {
  override readonly name = 'HeadgateError';
  /** The reason in a word, for programs. */
  readonly reason: string;
  /** The status of Headgate's answer. Null: there was none. */
  readonly status: number | null;
  /** When another try may succeed. Null: nobody said. */
  readonly retryAfterMs: number | null;

  constructor(reason: OwnReason | (string & {}), message: string, details: Details = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : {});
    this.reason = reason;
    this.status = details.status ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
  }
}

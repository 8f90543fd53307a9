/**
 * The outcome of a lease.
 * - `success`: the upstream answered and the body ended.
 * - `cancelled`: the caller left, or the call was cut short by us.
 * - `failed`: a definite 429 or 5xx of the upstream, or a connection that broke.
 * - `refused`: the upstream refused it for its own sake, or for that of its account: other calls are served.
 * - `unused`: the upstream was never called.
 */
export type LeaseOutcome = 'success' | 'cancelled' | 'failed' | 'refused' | 'unused';

/** Tells whether an upstream's status says that it has taken the call: a 2xx, or the 101 of a WebSocket. */
export function isTaken(status: number): boolean {
  return status === 101 || (status >= 200 && status <= 299);
}

/** Statuses that are counted one by one. All other errors are counted by their first digit. */
const COUNTED_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 422]);

/** Names an error status for a count, as in `401` and `4xx`. null: the status is no error. */
export function errorStatusName(status: number | null): string | null {
  if (status === null || status < 400) return null;
  return COUNTED_STATUSES.has(status) ? String(status) : `${String(status).charAt(0)}xx`;
}

/** Outcomes that a holder may tell by itself. */
export const OUTCOMES_REPORTED = [
  'success',
  'failed',
  'cancelled',
] as const satisfies LeaseOutcome[];

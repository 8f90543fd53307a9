/**
 * The outcome of a lease.
 *
 * - `success`: the upstream answered and the body ended.
 * - `cancelled`: the caller left, or Headgate cut the call short.
 * - `failed`: a definite 429 or 5xx of the upstream, or a broken connection.
 * - `refused`: the upstream refused this call or its account. Other calls are served.
 * - `unused`: the upstream was never called.
 */
export type LeaseOutcome = 'success' | 'cancelled' | 'failed' | 'refused' | 'unused';

/** Whether the status means that the upstream accepted the call: a 2xx, or the 101 of a WebSocket. */
export function isTaken(status: number): boolean {
  return status === 101 || (status >= 200 && status <= 299);
}

/** Statuses that are counted one by one. All other errors are counted by their first digit. */
const COUNTED_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 422]);

/** Returns the name under which an error status is counted, as in `401` and `4xx`. null if the status is no error. */
export function errorStatusName(status: number | null): string | null {
  if (status === null || status < 400) return null;
  return COUNTED_STATUSES.has(status) ? String(status) : `${String(status).charAt(0)}xx`;
}

export const OUTCOMES_REPORTED = [
  'success',
  'failed',
  'cancelled',
] as const satisfies LeaseOutcome[];

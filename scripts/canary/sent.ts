/** Requests that a run has made so far. */
export interface Sent {
  calls: number;
  admin_requests: number;
  calls_to_upstream: number;
}

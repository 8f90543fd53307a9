/** Requests that a run has made so far. */
export interface SentRequests {
  calls: number;
  admin_requests: number;
  calls_to_upstream: number;
}
